"""A message starts or resumes its reader, or waits until the reader may run."""

from __future__ import annotations

import asyncio

from stage import play
from talk_room import Room

from windlass.core.nouns.change import ChangeState
from windlass.core.nouns.run import Cause
from windlass.core.nouns.task import TaskState


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
