"""How changes leave the line when something came between: a landing nobody wrote down, a later change of the same."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from stage import Stage, play

from windlass.core.nouns.change import Change, ChangeState, Hold
from windlass.core.nouns.task import TaskState


@pytest.mark.parametrize("hold", [Hold.CHECKOUT, Hold.REVIEW, Hold.HUMAN, Hold.TROUBLE])
def test_a_held_change_that_has_landed_gets_its_receipt(repo: Path, tmp_path: Path, hold: Hold) -> None:
    """Main had moved when it was held, and nobody had written that down: it has landed, and is not just closed."""

    async def story() -> None:
        stage = Stage(repo, tmp_path / "home", checks="true")
        name = await stage.order()
        await stage.move()
        await stage.finish(name, "a.txt", "a\n")
        await stage.move()
        landed = await stage.change_of(name)
        held = replace(landed, state=ChangeState.HELD, hold=hold, landing=None)
        await stage.store.write(lambda store: store.record("change.held", held.id, held))
        stage.clock.time += 60
        await stage.move()
        again = await stage.change_of(name)
        assert (again.state, again.landing) == (ChangeState.LANDED, landed.landing)

    play(story)


@pytest.mark.parametrize(("state", "outcome"), [("landed", TaskState.DONE), ("closed", TaskState.CANCELLED)])
def test_a_task_ends_with_the_last_of_its_changes(repo: Path, tmp_path: Path, state: str, outcome: TaskState) -> None:
    """An earlier change is refused after a later one is over: nobody is left who could end the task."""

    async def story() -> None:
        stage = Stage(repo, tmp_path / "home", checks="! grep -q bad a.txt")
        done = await stage.order()
        await stage.move()
        await stage.finish(done, "b.txt", "b\n")
        await stage.move()
        name = await stage.order()
        await stage.move()
        await stage.engine.queue.pause(str(repo), "until the later one is over")
        await stage.finish(name, "a.txt", "bad\n")
        await stage.move()
        older, receipt = await stage.change_of(name), (await stage.change_of(done)).landing
        later = replace(older, id="c9", turn=older.turn + 1, state=ChangeState(state))
        later = replace(later, landing=receipt if state == "landed" else None)
        await stage.store.write(lambda store: store.record(f"change.{state}", later.id, later))
        await stage.engine.queue.resume(str(repo))
        await stage.move()
        closed = await stage.store.read(lambda store: store.find(Change, older.id))
        assert closed and (closed.state, closed.reason) == (ChangeState.CLOSED, "c9 has taken its place")
        assert (await stage.task_of(name)).state is outcome

    play(story)


def test_a_repository_that_two_use_first_at_once_is_one_project(repo: Path, tmp_path: Path) -> None:
    """Else it would have two gates, and each would move main without asking the other."""

    async def story() -> None:
        stage = Stage(repo, tmp_path / "home", checks="true")
        await asyncio.gather(stage.order("One"), stage.order("Two"), stage.order("Three"))
        assert len(await stage.store.read(lambda store: store.projects())) == 1
        tasks = await stage.store.read(lambda store: store.unfinished_tasks())
        assert len({task.project for task in tasks}) == 1

    play(story)
