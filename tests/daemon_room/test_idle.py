"""When a daemon that started by itself may leave."""

from __future__ import annotations

import asyncio

import pytest

from windlass.core.change import Change, ChangeState, Hold
from windlass.core.project import Project
from windlass.core.store import Writing
from windlass.core.task import Task, TaskState
from windlass.daemon.clock import SystemClock
from windlass.daemon.idle import is_needed
from windlass.store.memory import MemoryStore

PROJECT = Project(id="p", name="p", path="/p", main="main")


def needed(task: TaskState, change: ChangeState | None = None, hold: Hold | None = None) -> bool:
    """Whether one task, with its change, keeps a daemon."""
    rows = [Task(id="t1", project="p", title="Fix it", state=task)]

    def write(store: Writing) -> None:
        store.record("task.added", "t1", PROJECT, *rows)
        if change is not None:
            made = Change(id="c1", project="p", branch="b", head="h", title="t", task="t1", state=change, hold=hold)
            store.record("change.queued", "c1", made)

    async def story() -> bool:
        store = MemoryStore(SystemClock())
        await store.write(write)
        return await store.read(is_needed)

    return asyncio.run(story())


@pytest.mark.parametrize("state", TaskState)
def test_a_task_keeps_it_while_its_agent_may_act(state: TaskState) -> None:
    """One that waits for a person does not, and one that is over does not."""
    assert needed(state) is (state in (TaskState.OPEN, TaskState.ACTIVE))


@pytest.mark.parametrize("state", ChangeState)
def test_a_change_keeps_it_while_it_may_land(state: ChangeState) -> None:
    """In the line or under test; not when it came back, is over, or waits for a person."""
    hold = Hold.HUMAN if state is ChangeState.HELD else None
    assert needed(TaskState.LANDING, state, hold) is (state in (ChangeState.QUEUED, ChangeState.TESTING))


@pytest.mark.parametrize("hold", Hold)
def test_a_held_change_keeps_it_only_if_it_can_land_by_itself(hold: Hold) -> None:
    """A checkout, or trouble outside, is tried again and again; the rest waits for a person's next command."""
    assert needed(TaskState.LANDING, ChangeState.HELD, hold) is (hold in (Hold.CHECKOUT, Hold.TROUBLE))
