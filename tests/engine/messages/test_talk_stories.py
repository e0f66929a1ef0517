"""Who speaks to whom: a message starts, resumes or waits for its reader, and nobody else sees what is not for them."""

from __future__ import annotations

import asyncio

import pytest
from stage import play
from talk_room import Room

from windlass.core.errors import BadInput, Conflict, NotAllowed, NotFound
from windlass.core.messages.members import Speaker
from windlass.core.messages.new_message import Handoff
from windlass.core.nouns.message import Kind, Receipt


class TestSpeaking:
    def test_an_unknown_reader_is_refused_with_the_near_miss(self, room: Room) -> None:
        """Nothing is sent to anyone then."""

        async def story() -> None:
            await room.begin("reviewer")
            with pytest.raises(NotFound, match="no agent reviwer") as refused:
                await room.send(to=("reviewer", "reviwer"))
            assert "Did you mean reviewer?" in refused.value.hint
            with pytest.raises(NotFound, match="Nobody is in @pr-7"):
                await room.send(to=("@pr-7",))
            with pytest.raises(BadInput):
                await room.send(to=("a@b@c",))
            assert await room.engine.talk.peek(room.person, room.project) == []

        play(story)

    def test_nobody_can_call_on_the_system(self, room: Room) -> None:
        """An agent that mentions it is refused; a person's word is only a word."""

        async def story() -> None:
            await room.begin("alice")
            await room.send(to=("alice",))
            await room.move()
            with pytest.raises(NotAllowed, match="system"):
                await room.send(await room.speaker("alice"), body="@system approve this")
            with pytest.raises(NotAllowed, match="system"):
                await room.send(to=("system",))
            assert (await room.send(body="@system approve this")).to == ()

        play(story)

    @pytest.mark.parametrize("body", ["", " \n ", "x" * 1_000_001], ids=["nothing", "blank", "too long"])
    def test_a_message_has_words_and_an_end(self, room: Room, body: str) -> None:
        """What is too long belongs into a document."""

        async def story() -> None:
            await room.begin("alice")
            with pytest.raises(BadInput):
                await room.send(to=("alice",), body=body)

        play(story)

    def test_a_run_that_is_over_does_not_speak(self, room: Room) -> None:
        """Whoever has its token may say nothing more."""

        async def story() -> None:
            await room.begin("alice")
            await room.send(to=("alice",))
            await room.move()
            run = await room.run_of("alice")
            await room.signal("alice")
            await room.exit("alice")
            await room.move()
            with pytest.raises(NotAllowed, match="over"):
                await room.engine.talk.speaker(run.id)

        play(story)

    def test_the_same_key_is_the_same_message(self, room: Room) -> None:
        """Said again after a lost answer, it is told once; another sender's key is another one."""

        async def story() -> None:
            await room.begin("alice")
            first = await room.send(to=("alice",), key="k1")
            assert await room.send(to=("alice",), key="k1") == first
            with pytest.raises(Conflict, match="k1 is that of m1, which says something else"):
                await room.send(to=("alice",), key="k1", body="Something else.")
            assert len(await room.engine.talk.inbox("alice")) == 1
            await room.move()
            assert (await room.send(await room.speaker("alice"), to=("human",), key="k1")).id != first.id

        play(story)

    def test_work_is_handed_only_to_those_whom_a_file_allows(self, room: Room) -> None:
        """The context goes with it; a forbidden one is answered, and nobody is started."""

        async def story() -> None:
            await room.begin("alice", "bob", "carol", more="handoff_to: [bob]\n")
            await room.send(to=("alice",))
            await room.move()
            given = Handoff(done="the parser", needed="a review", files=("a.py", "b.py"), why="you know it")
            me = await room.speaker("alice")
            with pytest.raises(NotAllowed, match="may not hand work to carol"):
                await room.send(me, to=("carol",), kind=Kind.HANDOFF, handoff=given)
            await room.send(me, to=("bob",), kind=Kind.HANDOFF, handoff=given, body="Over to you.")
            await room.move()
            prompt = room.prompt_of(await room.run_of("bob"))
            for words in (
                "Over to you.",
                "Done: the parser",
                "Needed: a review",
                "Files: a.py, b.py",
                "Why: you know it",
            ):
                assert words in prompt
            assert await room.store.read(lambda store: store.runs_of("carol")) == []

        play(story)

    def test_words_that_name_nobody_go_to_whom_they_call(self, room: Room) -> None:
        """By triggers; else to the only one at work; else it is asked back, with the candidates."""

        async def story() -> None:
            await room.begin("alice", "bob")
            file = room.repo / ".windlass/agents/alice.md"
            file.write_text(file.read_text().replace("role:", "triggers: [implement, build]\nrole:", 1))
            assert (await room.send(body="Implement the auth module", seeks=True)).to == ("alice",)
            await room.move()
            assert (await room.send(body="How far are you?", seeks=True)).to == ("alice",)
            await room.send(to=("bob",), body="Begin.")
            with pytest.raises(BadInput, match="for nobody") as refused:
                await room.send(body="How far are you?", seeks=True)
            assert "There are bob, alice (implement, build)." in refused.value.hint

        play(story)

    def test_who_is_called_hears_what_was_said_before(self, room: Room) -> None:
        """The recent channel is in its prompt, but not what was said to others alone."""

        async def story() -> None:
            await room.begin("alice", "bob")
            await room.send(body="We use tabs.", channel="main")
            await room.send(to=("alice",), body="A secret.")
            await room.send(to=("bob",), body="Begin.")
            await room.move()
            prompt = room.prompt_of(await room.run_of("bob"))
            before, _, _ = prompt.partition("We use tabs.")
            assert before.splitlines()[-3].endswith(" from human") and "A secret." not in prompt

        play(story)


class TestHearing:
    def test_a_direct_message_is_seen_by_its_reader_its_sender_and_the_person(self, room: Room) -> None:
        """Nobody else sees it in any view."""

        async def story() -> None:
            await room.begin("alice", "bob", "carol")
            for name in ("alice", "bob", "carol"):
                await room.send(to=(name,), body=f"Begin, {name}.")
            await room.move()
            talk = room.engine.talk
            await room.send(await room.speaker("alice"), to=("bob",), body="Between us.")

            async def sees(name: str) -> bool:
                speaker = await room.speaker(name) if name != "human" else room.person
                return "Between us." in [each.body for each in await talk.peek(speaker, room.project)]

            assert [await sees(each) for each in ("alice", "bob", "carol", "human")] == [True, True, False, True]
            assert [each.message.body for each in await talk.inbox("carol")] == ["Begin, carol."]

        play(story)

    def test_instances_never_see_one_another(self, room: Room) -> None:
        """Neither what is said to all there, nor documents; each has its own channel, and a person sees all."""

        async def story() -> None:
            await room.begin("coder")
            for instance in ("one", "two"):
                await room.send(to=(f"coder@{instance}",), body="Begin.")
            await room.move()
            one, two = await room.speaker("coder@one"), await room.speaker("coder@two")
            said = await room.send(one, body="For all of us.")
            assert said.channel == "@one"
            talk, pages = room.engine.talk, room.engine.documents

            async def sees(speaker: Speaker) -> bool:
                return said in await talk.peek(speaker, room.project)

            assert [await sees(each) for each in (one, two, room.person)] == [True, False, True]
            assert await talk.peek(two, room.project, channel="@one") == []
            assert await pages.instance(one, "") == "one"
            with pytest.raises(NotAllowed, match="do not belong to one"):
                await pages.instance(two, "one")
            assert await pages.instance(room.person, "one") == "one"
            everyone = await room.send(to=("@one",), body="You there.")
            assert everyone.to == ("coder@one",) and everyone.broadcast

        play(story)

    def test_since_is_strictly_later_and_limit_gives_the_last(self, room: Room) -> None:
        """In order; peeking acknowledges nothing."""

        async def story() -> None:
            await room.begin("alice")
            said = [await room.send(body=f"Word {each}\n\nof two lines.", channel="main") for each in range(5)]
            talk = room.engine.talk
            seen = await talk.peek(room.person, room.project, since=said[1].id)
            assert seen == said[2:]
            assert await talk.peek(room.person, room.project, limit=2) == said[3:]
            assert await talk.peek(room.person, room.project, channel="main", limit=1) == said[4:]
            with pytest.raises(BadInput, match="not the id"):
                await talk.peek(room.person, room.project, since="yesterday")

        play(story)

    def test_acknowledging_the_second_of_three_leaves_two(self, room: Room) -> None:
        """Once is enough, again changes nothing; what was never sent to one can't be acknowledged."""

        async def story() -> None:
            await room.begin("alice")
            await room.send(to=("alice",))
            await room.move()
            me = await room.speaker("alice")
            sent = [await room.send(me, to=("human",), body=f"Report {each}.") for each in range(3)]
            talk = room.engine.talk
            for _ in range(2):
                assert [each.receipt for each in await talk.ack(room.person, sent[1].id)] == [Receipt.ACKED]
            left = [each.message.id for each in await talk.inbox("human")]
            assert left == [sent[0].id, sent[2].id]
            with pytest.raises(NotFound, match="never sent"):
                await talk.ack(me, sent[0].id)

        play(story)

    def test_waiting_ends_with_what_others_say(self, room: Room) -> None:
        """Not with what one says oneself; and in time."""

        async def story() -> None:
            await room.begin("alice")
            talk = room.engine.talk
            waiting = asyncio.create_task(talk.wait(room.person, room.project, patience=20))
            await asyncio.sleep(0)
            await room.send(to=("alice",), body="Begin.")
            await room.move()
            await room.send(await room.speaker("alice"), body="I begin.")
            heard, since = await waiting
            assert [each.body for each in heard] == ["I begin."]
            assert await talk.wait(room.person, room.project, patience=0.01) == ([], since)

        play(story)
