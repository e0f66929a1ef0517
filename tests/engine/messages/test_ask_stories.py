"""Asking, and waiting for the answer: who is asked, who may answer, and what whoever waits is told."""

from __future__ import annotations

import asyncio

import pytest
from stage import play
from talk_room import Room

import patience
from windlass.core.errors import Conflict, NotFound
from windlass.core.nouns.message import Kind, Message
from windlass.core.nouns.run import Chunk


class TestConversations:
    def test_a_question_is_put_to_one_and_its_answer_wakes_the_one_who_asked(self, room: Room) -> None:
        """It can be listened for, is answered once, and by nobody else."""

        async def story() -> None:
            await room.begin("alice", "bob")
            await room.send(to=("alice",), body="Begin.")
            await room.move()
            talk = room.engine.talk
            ask = await room.ask(await room.speaker("alice"), "Which port?", agent="bob")
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
            ask = await room.ask(room.person, "How far?", task=task.id)
            assert ask.to == (name,)
            with pytest.raises(NotFound, match="Nobody is at t99"):
                await room.ask(room.person, "How far?", task="t99")

        play(story)

    def test_the_same_key_is_the_same_question(self, room: Room) -> None:
        """Asked again after a lost answer, it is asked once, whoever is at the task by then; a key is of one kind."""

        async def story() -> None:
            await room.begin("alice")
            name = await room.order()
            await room.move()
            task, talk = await room.task_of(name), room.engine.talk
            first = await room.ask(room.person, "How far?", task=task.id, key="k1")
            assert await room.ask(room.person, "How far?", task=task.id, key="k1") == first
            with pytest.raises(Conflict, match="k1 is that of m1, which is for others"):
                await room.ask(room.person, "How far?", task="t99", key="k1")
            with pytest.raises(Conflict, match="k1 is that of m1, which is for others"):
                await room.ask(room.person, "How far?", agent="alice", key="k1")
            assert first.kind is Kind.ASK and len(await talk.inbox(name)) == 1
            with pytest.raises(Conflict, match="k1 is that of m1, which says something else"):
                await room.ask(room.person, "How long?", task=task.id, key="k1")
            with pytest.raises(Conflict, match="k1 is that of m1, which is a question"):
                await room.send(to=(name,), body="How far?", key="k1")

        play(story)


class TestSlots:
    """Whoever waits for an answer does nothing else meanwhile: the one who is to give it may run in its place."""

    def test_one_who_is_asked_runs_though_all_slots_are_taken(self, room: Room) -> None:
        """And who it asks in turn; nobody else does, and the limit holds again when the answer is there."""

        async def story() -> None:
            room.limit(runs=1)
            await room.begin("alice", "bob", "carol", "dave")
            await room.send(to=("alice",), body="Begin.")
            await room.move()
            talk, asks = room.engine.talk, []
            for asking, asked in (("alice", "bob"), ("bob", "carol")):
                await room.send(to=("dave",), body="You too.")
                asks.append(await room.ask(await room.speaker(asking), "Which port?", agent=asked))
                await room.move()
                assert (await room.run_of(asked)).live
            assert await live(room) == ["alice", "bob", "carol"]
            await talk.settle(await room.speaker("carol"), asks[1].id, "8080.")
            await room.send(await room.speaker("carol"), to=("dave",), body="And you.")
            await room.exit("carol")
            await room.move()
            assert await live(room) == ["alice", "bob"], "dave waits for a slot of its own"

        play(story)

    def test_one_whose_task_waits_for_a_slot_begins_with_the_question(self, room: Room) -> None:
        """It would else wait for the one who waits for it."""

        async def story() -> None:
            room.limit(runs=1)
            await room.begin("alice")
            await room.send(to=("alice",), body="Begin.")
            await room.move()
            name = await room.order()
            await room.move()
            await room.ask(await room.speaker("alice"), "How far?", agent=name)
            await room.move()
            assert "How far?" in room.prompt_of(await room.run_of(name))

        play(story)

    def test_who_waits_for_a_slot_is_said_to(self, room: Room) -> None:
        """By whoever sends it, in the inbox, and in the list; not any more once it is told."""

        async def story() -> None:
            room.limit(runs=1)
            await room.begin("alice", "bob")
            await room.send(to=("alice",), body="Begin.")
            await room.move()
            sent = await room.send(to=("bob",), body="And you.")
            [(receipt, outlook)] = await room.engine.outlook.of(sent.id)
            assert (receipt.reader, outlook) == ("bob", "waits: no slot is free (limits.runs)")
            await room.move()
            assert (await room.receipts(sent))["bob"] == ("pending", "no slot is free (limits.runs)")
            seen = {each.agent.id: each.evidence for each in await room.engine.status.every()}
            assert seen["bob"] == "mail waits: no slot is free (limits.runs)"
            await room.signal("alice")
            await room.exit("alice")
            await room.move()
            assert (await room.receipts(sent))["bob"] == ("delivered", "")

        play(story)

    def test_one_who_works_on_keeps_its_slot(self, room: Room) -> None:
        """What it prints after its question says so; what it prints with it does not."""

        async def story() -> None:
            room.limit(runs=1)
            await room.begin("alice", "bob")
            await room.send(to=("alice",), body="Begin.")
            await room.move()
            run = await room.run_of("alice")
            await room.ask(await room.speaker("alice"), "Which port?", agent="bob")
            said = Chunk(run=run.id, offset=0, content=b"I go on.", at=room.clock.now() + 10)
            await room.store.write(lambda store: store.append(said))
            await room.move()
            assert await live(room) == ["alice"]

        play(story)


async def live(room: Room) -> list[str]:
    return sorted(each.agent for each in await room.store.read(lambda store: store.live_runs()))


class TestWaiting:
    def test_who_waits_is_told_as_soon_as_no_answer_will_come(self, room: Room) -> None:
        """A run that ends without an answer: who ended how. What is under way, or about to begin, is waited for."""

        async def story() -> None:
            await room.begin("alice")
            ask = await room.ask(room.person, "Which port?", agent="alice")
            assert await stands(room, ask) == "", "it is about to be started"
            await room.move()
            assert await stands(room, ask) == "", "it is at it"
            waiting = asyncio.create_task(room.engine.replies.to(room.person, ask.id, patience=30))
            await room.signal("alice", '{"status": "error", "error": "no idea"}')
            await room.exit("alice")
            await room.move()
            found = await asyncio.wait_for(waiting, patience.seconds(5))
            assert (found.answer, found.reason) == (None, "alice's run 1 ended (failed: no idea) without an answer")
            await room.engine.talk.settle(room.person, ask.id, "8080.")
            answered = await room.engine.replies.to(room.person, ask.id, patience=0)
            assert answered.answer is not None and answered.reason == "", "the question had stayed open"

        play(story)

    def test_one_that_runs_again_is_waited_for(self, room: Room) -> None:
        """A crash is tried again, and what it is told next may bring the answer; after the last try it is told."""

        async def story() -> None:
            await room.begin("alice")
            ask = await room.ask(room.person, "Which port?", agent="alice")
            await room.move()
            await room.exit("alice", 1)
            assert await stands(room, ask) == ""
            await room.move()
            assert (await room.run_of("alice")).number == 2 and await stands(room, ask) == ""
            await room.exit("alice", 1)
            await room.move()
            assert await stands(room, ask) == "alice did not get it: t1 is failed"

        play(story)

    def test_one_that_nobody_wakes_is_not_waited_for(self, room: Room) -> None:
        """Stopped by hand, and asked by another agent: that is said at once. What a person asks wakes it."""

        async def story() -> None:
            await room.begin("alice", "bob")
            for name in ("alice", "bob"):
                await room.send(to=(name,), body="Begin.")
            await room.move()
            await room.engine.runs.stop("bob", "stopped by hand")
            await room.move()
            alice = await room.speaker("alice")
            ask = await room.ask(alice, "Which port?", agent="bob")
            found = await room.engine.replies.to(alice, ask.id, patience=30)
            assert (found.answer, found.reason) == (None, "bob waits: stopped by hand")
            own = await room.ask(room.person, "Which port?", agent="bob")
            assert await stands(room, own) == ""

        play(story)

    def test_a_person_is_always_waited_for(self, room: Room) -> None:
        """Nobody knows when they look."""

        async def story() -> None:
            await room.begin("alice")
            await room.send(to=("alice",), body="Begin.")
            await room.move()
            alice = await room.speaker("alice")
            ask = await room.ask(alice, "May I?", agent="human")
            assert (await room.engine.replies.to(alice, ask.id, patience=0)).reason == ""

        play(story)


async def stands(room: Room, ask: Message) -> str:
    """Why no answer is to be expected, if that is so."""
    return (await room.engine.replies.to(room.person, ask.id, patience=0)).reason
