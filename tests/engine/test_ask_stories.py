"""Asking, and waiting for the answer: who is asked, who may answer, and what whoever waits is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from talk_room import Room, play

from windlass.core.errors import Conflict, NotFound
from windlass.core.message import Kind


@pytest.fixture
def room(repo: Path, tmp_path: Path) -> Room:
    return Room(repo, tmp_path / "home")


class TestConversations:
    def test_a_question_is_put_to_one_and_its_answer_wakes_the_one_who_asked(self, room: Room) -> None:
        """It can be listened for, is answered once, and by nobody else."""

        async def story() -> None:
            await room.begin("alice", "bob")
            await room.send(to=("alice",), body="Begin.")
            await room.move()
            talk = room.engine.talk
            ask = await talk.converse(await room.speaker("alice"), room.project, "Which port?", agent="bob")
            await room.signal("alice")
            await room.exit("alice")
            await room.move()
            bob = await room.speaker("bob")
            assert await talk.listen(bob, patience=1) == ask
            with pytest.raises(NotFound, match="no conversation"):
                await talk.settle(bob, "m99", "x")
            await talk.settle(bob, ask.id, "8080.")
            assert await talk.listen(bob, patience=0.01) is None
            with pytest.raises(Conflict, match="has an answer"):
                await talk.settle(bob, ask.id, "8081.")
            await room.move()
            run = await room.run_of("alice")
            assert run.live and "8080." in room.prompt_of(run)

        play(story)

    def test_whoever_is_at_a_task_can_be_asked(self, room: Room) -> None:
        """Or someone at a phase; where nobody is, that is said."""

        async def story() -> None:
            await room.begin("alice")
            name = await room.order()
            await room.move()
            task = await room.task_of(name)
            ask = await room.engine.talk.converse(room.person, room.project, "How far?", task=task.id)
            assert ask.to == (name,)
            with pytest.raises(NotFound, match="Nobody is at t99"):
                await room.engine.talk.converse(room.person, room.project, "How far?", task="t99")

        play(story)

    def test_the_same_key_is_the_same_question(self, room: Room) -> None:
        """Asked again after a lost answer, it is asked once, whoever is at the task by then; a key is of one kind."""

        async def story() -> None:
            await room.begin("alice")
            name = await room.order()
            await room.move()
            task, talk = await room.task_of(name), room.engine.talk
            first = await talk.converse(room.person, room.project, "How far?", task=task.id, key="k1")
            assert await talk.converse(room.person, room.project, "How far?", agent="alice", key="k1") == first
            assert first.kind is Kind.ASK and len(await talk.inbox(name)) == 1
            with pytest.raises(Conflict, match="k1 is that of m1, which says something else"):
                await talk.converse(room.person, room.project, "How long?", task=task.id, key="k1")
            with pytest.raises(Conflict, match="k1 is that of m1, which is a question"):
                await room.send(to=(name,), body="How far?", key="k1")

        play(story)
