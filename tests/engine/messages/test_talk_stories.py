"""Who speaks to whom: a message starts, resumes or waits for its reader, and nobody else sees what is not for them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from talk_room import Room, play

from windlass.core.errors import BadInput, Conflict, NotAllowed, NotFound
from windlass.core.messages.members import Speaker
from windlass.core.messages.new_message import Handoff
from windlass.core.nouns.change import ChangeState
from windlass.core.nouns.message import Kind, Receipt
from windlass.core.nouns.run import Cause
from windlass.core.nouns.task import TaskState


@pytest.fixture
def room(repo: Path, tmp_path: Path) -> Room:
    return Room(repo, tmp_path / "home")


class TestWaking:
    def test_a_message_starts_an_agent_that_is_only_defined(self, room: Room) -> None:
        """What it is told becomes its task; when that is done, it is idle, and the next message resumes it."""

        async def story() -> None:
            await room.begin("reviewer")
            sent = await room.send(to=("reviewer",), body="Please look at auth.py.\nIt is odd.")
            await room.move()
            run, task = await room.run_of("reviewer"), await room.task_of("reviewer")
            assert (run.cause, task.title, sent.direct) == (Cause.CALL, "m1 from human", True)
            assert "It is odd." in room.prompt_of(run) and "You are reviewer of this project" in room.prompt_of(run)
            await room.signal("reviewer")
            await room.exit("reviewer")
            await room.move()
            assert (await room.task_of("reviewer")).state is TaskState.DONE
            assert await room.receipts(sent) == {"reviewer": ("read", "")}
            await room.send(to=("reviewer",), body="And now?")
            await room.move()
            second = await room.run_of("reviewer")
            assert (second.number, second.cause, second.task) == (2, Cause.CALL, "t2")
            assert "It is odd." not in room.prompt_of(second)

        play(story)

    def test_a_busy_agent_is_told_right_after_its_run(self, room: Room) -> None:
        """It is not disturbed, and what it reads itself meanwhile does not wake it again."""

        async def story() -> None:
            await room.begin("coder")
            await room.send(to=("coder",), body="One.")
            await room.move()
            two, three = await room.send(to=("coder",), body="Two."), await room.send(to=("coder",), body="Three.")
            await room.move()
            assert [
                each.message.body for each in await room.engine.talk.read(await room.speaker("coder"), limit=1)
            ] == ["Two."]
            await room.signal("coder")
            await room.exit("coder")
            await room.move()
            second = await room.run_of("coder")
            assert second.number == 2 and "Three." in room.prompt_of(second) and "Two." not in room.prompt_of(second)
            assert (await room.receipts(two), await room.receipts(three)) == (
                {"coder": ("acked", "")},
                {"coder": ("delivered", "")},
            )

        play(story)

    def test_mentions_give_it_to_all_and_wake_those_who_are_addressed(self, room: Room) -> None:
        """Who is only spoken of has it in the inbox."""

        async def story() -> None:
            await room.begin("alice", "bob")
            for name in ("alice", "bob"):
                await room.send(to=(name,), body="Begin.")
            await room.move()
            for name in ("alice", "bob"):
                await room.signal(name)
                await room.exit(name)
            await room.move()
            said = await room.send(body="@alice I gave it to @bob, and mail x@bob.com.")
            await room.move()
            assert said.to == ("alice", "bob") and not said.direct
            assert (await room.run_of("alice")).live and not (await room.run_of("bob")).live
            waits = (await room.receipts(said))["bob"]
            assert waits == ("pending", "only good to know; it is told when it goes on")
            assert [each.message.id for each in await room.engine.talk.inbox("bob")][-1] == said.id

        play(story)

    def test_a_broadcast_starts_nobody_who_has_not_worked(self, room: Room) -> None:
        """It goes to those who are there, and says why it waits."""

        async def story() -> None:
            await room.begin("alice", "bob")
            await room.send(to=("alice",), body="Begin.")
            await room.move()
            said = await room.send(everyone=True, body="Main is frozen.")
            assert said.to == ("alice",) and said.broadcast
            await room.move()
            assert await room.store.read(lambda store: store.runs_of("bob")) == []

        play(story)

    def test_a_retired_agent_is_woken_by_a_person_alone(self, room: Room) -> None:
        """What agents say to it waits, with the reason."""

        async def story() -> None:
            await room.begin("alice")
            name = await room.order()
            await room.move()
            await room.finish(name, "b.txt", "b\n")
            await room.move()
            assert (await room.agent(name)).retired_at is not None
            await room.send(to=("alice",), body="Begin.")
            await room.move()
            said = await room.send(await room.speaker("alice"), to=(name,), body="More?")
            await room.send(everyone=True, body="All of you.")
            await room.move()
            assert (await room.receipts(said))[name] == ("pending", "its work is finished")
            await room.send(to=(name,), body="Do a little more.")
            await room.move()
            run = await room.run_of(name)
            assert run.live and "More?" in room.prompt_of(run) and (await room.agent(name)).retired_at is None

        play(story)

    def test_a_stopped_agent_stays_stopped_until_a_person_calls(self, room: Room) -> None:
        """Mail that was on its way when it was stopped does not start it again."""

        async def story() -> None:
            await room.begin("alice")
            await room.send(to=("alice",), body="Begin.")
            await room.move()
            await room.send(to=("alice",), body="Faster.")
            await room.engine.runs.stop("alice", "stopped by hand")
            await room.move()
            await room.exit("alice", 1)
            await room.move()
            assert not (await room.run_of("alice")).live
            await room.send(to=("alice",), body="Go on.")
            await room.move()
            run = await room.run_of("alice")
            assert run.live and "Faster." in room.prompt_of(run)

        play(story)

    def test_a_message_that_no_run_survives_is_kept_as_failed(self, room: Room) -> None:
        """Its reader crashes whenever it is told: after the allowed tries nobody tries again, until a person speaks."""

        async def story() -> None:
            await room.begin("alice")
            said = await room.send(to=("alice",), body="Crash.")
            for _ in range(4):
                await room.move()
                if (await room.run_of("alice")).live:
                    await room.exit("alice", 9)
                room.clock.time += 3600
            await room.move()
            runs = await room.store.read(lambda store: store.runs_of("alice"))
            assert (len(runs), (await room.task_of("alice")).state) == (2, TaskState.FAILED)
            assert await room.receipts(said) == {"alice": ("failed", "t1 is failed")}
            assert said in [each.message for each in await room.engine.talk.inbox("alice")]
            await room.send(to=("alice",), body="Try again.")
            await room.move()
            assert (await room.run_of("alice")).live

        play(story)

    def test_what_an_agent_brought_does_not_land_while_it_is_being_stopped(self, room: Room) -> None:
        """It was called again while its change was in line; stopping it gives both up."""

        async def story() -> None:
            await room.begin("alice")
            name = await room.order()
            await room.move()
            await room.engine.queue.pause(str(room.repo), "")
            await room.finish(name, "b.txt", "b\n")
            await room.move()
            await room.send(to=(name,), body="One thing more.")
            await room.move()
            assert (await room.run_of(name)).live
            stir, room.engine.runs.stir = room.engine.runs.stir, lambda _: None  # it takes a while to stop
            await room.engine.runs.stop(name, "stopped by hand")
            await room.engine.queue.resume(str(room.repo))
            await room.engine.ticks["land"].tick()
            await room.engine._landings.settle()
            await room.engine._tests.settle()
            await room.engine._landings.settle()
            assert (await room.change_of(name)).state is ChangeState.TESTING
            stir((await room.run_of(name)).id)
            await room.move()
            assert (await room.change_of(name)).state is ChangeState.CLOSED
            assert not (room.repo / "b.txt").exists()

        play(story)

    def test_agents_that_talk_on_and_on_are_paused_until_a_person_speaks(self, room: Room) -> None:
        """Each wakes the other; beyond the limit the next one waits, and a person's word lets it go on."""

        async def story() -> None:
            await room.begin("alice", "bob")
            room.limit(hops=3)
            await room.send(to=("alice",), body="Begin.")
            names = ("alice", "bob")
            for turn in range(4):
                await room.move()
                me, other = names[turn % 2], names[(turn + 1) % 2]
                said = await room.send(await room.speaker(me), to=(other,), body=f"Word {turn}.")
                await room.signal(me)
                await room.exit(me)
            await room.move()
            assert said.hops == 4
            waits = await room.receipts(said)
            assert waits["alice"][1].startswith("4 messages went from agent to agent without a person; ")
            assert not (await room.run_of("alice")).live
            await room.send(to=("alice",), body="Go on.")
            await room.move()
            assert (await room.run_of("alice")).live

        play(story)

    def test_fifty_questions_at_once_resume_their_reader_once(self, room: Room) -> None:
        """One run has them all."""

        async def story() -> None:
            await room.begin("alice")
            asks = (room.ask(room.person, f"Question {each}?", agent="alice") for each in range(50))
            await asyncio.gather(*asks)
            await room.move()
            runs = await room.store.read(lambda store: store.runs_of("alice"))
            assert len(runs) == 1
            prompt = room.prompt_of(runs[0])
            assert [each for each in range(50) if prompt.count(f"text\nQuestion {each}?\n") != 1] == []

        play(story)


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
            assert "human: We use tabs." in prompt and "A secret." not in prompt

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
