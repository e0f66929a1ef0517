"""When a daemon that started by itself may leave."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fakes.store import MemoryStore
from windlass.core.nouns.change import Change, ChangeState, Hold
from windlass.core.nouns.message import Message
from windlass.core.nouns.project import Project
from windlass.core.nouns.task import Task, TaskState
from windlass.core.ports.store import Writing
from windlass.daemon import idle
from windlass.daemon.boot import Program
from windlass.daemon.clock import SystemClock
from windlass.daemon.idle import is_needed, leave_when_idle, watched_until
from windlass.engine.bell import Bell
from windlass.engine.chatfiles.files import ChatFile

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


def said(key: str, at: float) -> Message:
    return Message(id=f"m{int(at)}", channel="main", sender="human", to=(), body="x", project="p", key=key, sent_at=at)


def test_a_line_in_a_chat_keeps_it_for_a_day() -> None:
    """Whoever wrote there may write again; what was said any other way calls for it by itself."""
    mark = ChatFile(PROJECT, None, PROJECT.path).mark

    async def until(*messages: Message) -> float:
        store = MemoryStore(SystemClock())
        await store.write(lambda writing: writing.record("message.sent", "m1", PROJECT, *messages))
        return await store.read(watched_until)

    assert asyncio.run(until(said("", 100.0), said("my own key", 200.0))) == 0.0
    assert asyncio.run(until(said(f"{mark} k1", 100.0), said("", 200.0))) == 100.0 + idle.A_DAY


class LongEnough(Exception):
    """It has stayed for as long as the test looks."""


@dataclass
class Slow:
    """A clock of which every look takes a minute."""

    time: float = 1000.0
    looks: int = 0
    most: int = 0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        if self.looks == self.most:
            raise LongEnough
        self.looks += 1
        self.time += 60
        return self.time


@dataclass
class Quiet:
    """A daemon in which nothing happens, and what may keep it."""

    home: Path
    lines: tuple[Message, ...] = ()
    clock: Slow = field(default_factory=Slow)
    bell: Bell = field(default_factory=Bell)

    async def minutes(self, most: int) -> int:
        """For how long it stays, or so long at least."""
        store = MemoryStore(self.clock)
        await store.write(lambda writing: writing.record("message.sent", "m1", PROJECT, *self.lines))
        settings = SimpleNamespace(at=lambda _: SimpleNamespace(daemon=SimpleNamespace(idle_minutes=15.0)))
        engine = SimpleNamespace(ports=SimpleNamespace(clock=self.clock, store=store), bell=self.bell)
        building: Any = SimpleNamespace(engine=engine, settings=settings)
        (self.home / "daemon.sock").touch()
        self.clock.most = most
        with suppress(LongEnough):
            await leave_when_idle(cast(Program, building), self.home, asyncio.Event())
        return self.clock.looks


class TestLeaving:
    @pytest.fixture(autouse=True)
    def _at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(idle, "LOOK_EVERY", 0.0)

    def test_one_that_nobody_calls_for_leaves(self, tmp_path: Path) -> None:
        """With a project and without an agent; after its time, and not much later."""
        assert 15 < asyncio.run(Quiet(tmp_path).minutes(200)) < 40

    def test_one_whose_chat_is_written_to_stays_for_a_day(self, tmp_path: Path) -> None:
        """And then it leaves."""
        line = said(f"{ChatFile(PROJECT, None, PROJECT.path).mark} k1", 1000.0)
        stayed = asyncio.run(Quiet(tmp_path, (line,)).minutes(5000))
        assert 24 * 60 <= stayed < 25 * 60

    def test_one_that_someone_reads_along_with_stays(self, tmp_path: Path) -> None:
        """For as long as they do: `windlass watch` waits for what comes next."""

        async def story() -> None:
            quiet = Quiet(tmp_path)
            ear = quiet.bell.ear(output=True)
            assert await quiet.minutes(300) == 300
            del ear
            assert await Quiet(tmp_path, bell=quiet.bell).minutes(300) < 40

        asyncio.run(story())
