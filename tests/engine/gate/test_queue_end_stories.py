"""How changes leave the line when something came between: a landing nobody wrote down, a later change of the same."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from stage import Stage, play

from windlass.core.address import HUMAN
from windlass.core.messages.members import Speaker
from windlass.core.messages.new_message import NewMessage
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


def test_what_went_back_too_often_is_closed_when_its_author_fails(repo: Path, tmp_path: Path) -> None:
    """It was held after many returns, the author was asked once more, and could not go on: nobody will mend it."""

    async def story() -> None:
        stage = Stage(repo, tmp_path / "home", checks="! grep -q bad a.txt")
        stage.limit(retries=0, reminders=0)
        name = await stage.order()
        await stage.move()
        for text in ("bad\n", "bad too\n", "bad still\n"):
            await stage.finish(name, "a.txt", text)
            await stage.move()
        held = await stage.change_of(name)
        assert (held.state, held.hold) == (ChangeState.HELD, Hold.HUMAN)

        await stage.engine.talk.answer(name, ["Write good into it."])
        await stage.move()
        await stage.exit(name, 1)
        await stage.move()
        assert (await stage.task_of(name)).state is TaskState.FAILED
        closed = await stage.change_of(name)
        assert (closed.state, closed.reason) == (ChangeState.CLOSED, "exit code 1, without a signal")

    play(story)


def test_what_a_person_holds_stays_their_question_when_its_author_fails(repo: Path, tmp_path: Path) -> None:
    """Its author is called for something else and fails; the change is whole, and lands when the person lets it."""

    async def story() -> None:
        stage = Stage(repo, tmp_path / "home", checks="")
        stage.limit(retries=0, reminders=0)
        name = await stage.order()
        await stage.move()
        await stage.finish(name, "a.txt", "a\n")
        await stage.move()
        change = await stage.change_of(name)
        await stage.engine.queue.retry(change.id)
        await stage.engine.queue.hold(change.id, "until Monday")
        said = NewMessage(body="Where is a.txt?", project=change.project, to=(name,))
        await stage.engine.talk.send(Speaker(str(HUMAN)), said)
        await stage.move()
        await stage.exit(name, 1)
        await stage.move()
        assert (await stage.task_of(name)).state is TaskState.FAILED
        [ask] = await stage.store.read(lambda store: store.open_asks())
        assert f"windlass queue release {change.id}" in ask.body
        stage.check_with("true")
        await stage.engine.queue.release(change.id)
        await stage.move()
        assert (await stage.change_of(name)).landing is not None

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
