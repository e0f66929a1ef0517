"""Stories of what is said again, and of whom it reaches: once, and those who were meant."""

from __future__ import annotations

from dataclasses import replace

import pytest
from stage import play
from talk_room import Room

from windlass.core.errors import BadInput, Conflict, NotFound


def test_a_broadcast_in_main_reaches_those_in_main(room: Room) -> None:
    """`send --all --channel main` is for everyone in main, not for an instance that is called main."""

    async def story() -> None:
        await room.begin("alice", "bob")
        for name in ("alice", "bob"):
            await room.send(to=(name,), body="Begin.")
        await room.move()
        said = await room.send(everyone=True, channel="main", body="Main is red.")
        assert set(said.to) == {"alice", "bob"}

    play(story)


def test_a_broadcast_of_an_instance_stays_in_it(room: Room) -> None:
    """Instances never see each other's messages: an agent's `--all` does not reach those of another instance."""

    async def story() -> None:
        await room.begin("alice", "bob")
        await room.send(to=("alice@one",), body="Begin.")
        await room.send(to=("bob@two",), body="Begin.")
        await room.move()
        said = await room.send(await room.speaker("alice@one"), everyone=True, body="Our secret plan.")
        seen = await room.engine.talk.peek(await room.speaker("bob@two"), room.project)
        assert "bob@two" not in said.to and said.id not in [each.id for each in seen]

    play(story)


def test_the_reader_s_own_broken_file_is_named(room: Room) -> None:
    """And not called an agent that is not there; another name is still only that."""

    async def story() -> None:
        await room.begin("alice")
        (room.repo / ".windlass/agents/bob.md").write_text("---\nname: bob\n---\nYou are bob.\n")
        with pytest.raises(BadInput, match=r"The agent bob can't be used: \.windlass/agents/bob\.md:\d+: "):
            await room.send(to=("bob",))
        with pytest.raises(NotFound, match="There is no agent carol here"):
            await room.send(to=("carol",))

    play(story)


def test_a_key_that_was_used_for_another_reader_is_refused(room: Room) -> None:
    """Else the second reader never gets it, and its sender is told that all went well."""

    async def story() -> None:
        await room.begin("alice", "bob")
        await room.send(to=("alice",), body="Go on.", key="k1")
        with pytest.raises(Conflict, match="which is for others"):
            await room.send(to=("bob",), body="Go on.", key="k1")
        with pytest.raises(Conflict, match="which is for others"):
            await room.send(everyone=True, body="Go on.", key="k1")
        assert (await room.send(to=("alice",), body="Go on.", key="k1")).to == ("alice",)

    play(story)


def test_what_was_heard_is_known_again_though_its_readers_have_gone(room: Room) -> None:
    """A sender that lost the answer says it again under its key, and hears that it was said."""

    async def story() -> None:
        await room.begin("alice", "bob")
        await room.send(to=("alice@one",), body="Begin.")
        await room.move()
        first = await room.send(to=("@one",), body="Stop.", key="k1")
        agent = replace(await room.agent("alice@one"), retired_at=5.0)
        await room.store.write(lambda store: store.record("agent.retired", agent.id, agent))
        assert (await room.send(to=("@one",), body="Stop.", key="k1")).id == first.id

    play(story)


def test_words_for_the_only_one_are_known_again_though_there_are_two(room: Room) -> None:
    """What named nobody went to the only agent at work; said again under its key, it is not for nobody."""

    async def story() -> None:
        await room.begin("alice", "bob")
        await room.send(to=("alice",), body="Begin.")
        await room.move()
        first = await room.send(body="Please hurry.", seeks=True, key="k1")
        await room.send(to=("bob",), body="Begin.")
        await room.move()
        assert (await room.send(body="Please hurry.", seeks=True, key="k1")).id == first.id

    play(story)


def test_an_answer_that_comes_again_is_the_same(room: Room) -> None:
    """Whoever lost the daemon's word says it again, and is not told that somebody else was faster."""

    async def story() -> None:
        await room.begin("alice", "bob")
        for name in ("alice", "bob"):
            await room.send(to=(name,), body="Begin.")
        await room.move()
        ask = await room.ask(await room.speaker("alice"), "Port?", agent="bob")
        me = await room.speaker("bob")
        first = await room.engine.talk.settle(me, ask.id, "8080")
        assert (await room.engine.talk.settle(me, ask.id, "8080")).id == first.id

    play(story)


def test_nobody_asks_itself_by_its_short_name(room: Room) -> None:
    """In an instance, `alice` is alice@one for alice@one."""

    async def story() -> None:
        await room.begin("alice")
        await room.send(to=("alice@one",), body="Begin.")
        await room.move()
        with pytest.raises(BadInput, match="can't ask itself"):
            await room.ask(await room.speaker("alice@one"), "Port?", agent="alice")

    play(story)


def test_a_person_s_answer_that_was_not_heard_of_may_be_given_again(room: Room) -> None:
    """It is the same answer then, and not one to what was asked meanwhile."""

    async def story() -> None:
        await room.begin("alice")
        await room.send(to=("alice",), body="Begin.")
        await room.move()
        await room.signal("alice", '{"status": "questions", "questions": [{"id": "q1", "question": "Which?"}]}')
        await room.exit("alice")
        await room.move()
        first = await room.engine.talk.answer("alice", ["q1=That one."], key="k1")
        assert await room.engine.talk.answer("alice", ["q1=That one."], key="k1") == first
        await room.move()
        me = await room.speaker("alice")
        await room.ask(me, "Drop the table?", agent="human")
        assert await room.engine.talk.answer("alice", ["q1=That one."], key="k1") == first
        assert (await room.engine.talk.answer("alice", ["No."], key="k2")).body == "No."
        with pytest.raises(Conflict, match="alice has no open question"):
            await room.engine.talk.answer("alice", ["No."], key="k3")

    play(story)
