"""A task with children is a phase: who works in it knows it, and can be asked by it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from stage import play
from talk_room import Room

from windlass.core.errors import BadInput, NotFound
from windlass.core.nouns.message import Message
from windlass.core.nouns.project import Project
from windlass.core.nouns.task import Task, TaskState
from windlass.engine.projects.tasks import Order


@pytest.fixture
def room(repo: Path, tmp_path: Path) -> Room:
    return Room(repo, tmp_path / "home")


async def ordered(room: Room, title: str, *, phase: str = "") -> Task:
    """A task for a new agent."""
    order = Order(path=str(room.repo), title=title, provider="command", options={"command": "x"}, phase=phase)
    return (await room.engine.tasks.add(order))[0]


async def asked(room: Room, phase: str) -> Message:
    """A question to whoever is at a phase."""
    return await room.ask(room.person, "How far?", phase=phase)


class TestPhases:
    def test_who_works_in_a_phase_finds_it_beside_its_task(self, room: Room) -> None:
        """To be read only, with its brief."""

        async def story() -> None:
            await room.begin()
            phase = await ordered(room, "Split the parser")
            task = await ordered(room, "Write the lexer", phase=phase.id)
            assert (task.parent, phase.parent) == (phase.id, "")
            await room.move()
            given = (await room.worktree(task.agent)) / ".windlass/input"
            assert "Split the parser" in (given / f"context/phases/{phase.id}.md").read_text()
            assert json.loads((given / "manifest.json").read_text())["contextFiles"] == [
                f"context/phases/{phase.id}.md"
            ]

        play(story)

    def test_one_who_is_running_is_asked_before_one_who_is_idle(self, room: Room) -> None:
        """One who is idle is resumed to answer; where nobody is left, that is said."""

        async def story() -> None:
            await room.begin()
            phase = await ordered(room, "Split the parser")
            with pytest.raises(NotFound, match=f"Nobody is at {phase.id}"):
                await asked(room, phase.id)
            first, second = [await ordered(room, each, phase=phase.id) for each in ("The lexer", "The tree")]
            await room.move()
            await room.signal(first.agent, '{"status": "questions", "questions": ["Which?"]}')
            await room.exit(first.agent)
            await room.move()
            ask = await asked(room, phase.id)
            assert ask.to == (second.agent,)
            await room.engine.talk.settle(await room.speaker(second.agent), ask.id, "Half way.")
            await room.finish(second.agent, "tree.txt", "t\n")
            await room.move()
            assert (await room.task_of(second.agent)).state is TaskState.DONE
            assert not (await room.run_of(first.agent)).live
            assert (await asked(room, phase.id)).to == (first.agent,)
            await room.move()
            run = await room.run_of(first.agent)
            assert run.live and "How far?" in room.prompt_of(run)
            await room.engine.runs.stop(first.agent, "stopped by hand")
            await room.move()
            with pytest.raises(NotFound, match=f"Nobody is at {phase.id}"):
                await asked(room, phase.id)

        play(story)

    def test_a_phase_and_its_tasks_end_each_by_itself(self, room: Room) -> None:
        """A task in a phase neither waits for it nor holds it up."""

        async def story() -> None:
            await room.begin()
            phase = await ordered(room, "Split the parser")
            task = await ordered(room, "Write the lexer", phase=phase.id)
            await room.move()
            await room.finish(phase.agent, "parser.txt", "p\n")
            await room.move()
            states = [(await room.engine.tasks.get(each.id)).state for each in (phase, task)]
            assert states == [TaskState.DONE, TaskState.ACTIVE]
            await room.finish(task.agent, "lexer.txt", "l\n")
            await room.move()
            assert (await room.engine.tasks.get(task.id)).state is TaskState.DONE

        play(story)

    def test_what_can_be_no_phase_is_refused_before_anything_is_created(self, room: Room) -> None:
        """A task that is not there, one of another project, and one that is over; each with what to type next."""

        async def story() -> None:
            await room.begin()
            over, theirs = await ordered(room, "Over"), await ordered(room, "Theirs")
            await room.engine.runs.stop(over.agent, "stopped by hand")
            other = Project(id="other", name="other", path="/other", main="main")
            moved = replace(theirs, project=other.id)
            await room.store.write(lambda store: store.record("project.added", other.id, other, moved))
            before = await room.store.read(lambda store: store.last_seq())
            for wrong in ("t99", theirs.id):
                with pytest.raises(NotFound, match=f"There is no task {wrong} in this project") as refused:
                    await ordered(room, "In it", phase=wrong)
                assert "windlass list" in refused.value.hint
            with pytest.raises(BadInput, match=f"{over.id} is cancelled") as ended:
                await ordered(room, "In it", phase=over.id)
            assert "windlass list" in ended.value.hint
            assert await room.store.read(lambda store: store.last_seq()) == before

        play(story)

    def test_one_who_is_at_a_phase_asks_another_who_is(self, room: Room) -> None:
        """Not itself; and a task of another project is nobody's here, whoever has the same name."""

        async def story() -> None:
            await room.begin()
            phase = await ordered(room, "Split the parser")
            first, second = [await ordered(room, each, phase=phase.id) for each in ("The lexer", "The tree")]
            await room.move()
            for asking, asked in ((first, second), (second, first)):
                me = await room.speaker(asking.agent)
                assert (await room.ask(me, "How far?", phase=phase.id)).to == (asked.agent,)
            theirs = replace(first, id="t99", project="other")
            await room.store.write(lambda store: store.record("task.added", "t99", theirs))
            with pytest.raises(NotFound, match="Nobody is at t99"):
                await room.ask(room.person, "How far?", task="t99")

        play(story)
