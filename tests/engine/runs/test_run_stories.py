"""The life of a run: started once, watched, judged, and found again after a crash."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from stage import Stage, play

from windlass.core.errors import BadInput, Conflict, Unavailable
from windlass.core.nouns.agent import Permissions
from windlass.core.nouns.run import Cause, Identity, Outcome
from windlass.core.nouns.task import TaskState
from windlass.core.runs.sandbox import SandboxKeeper
from windlass.core.settings.schema import WorkSettings
from windlass.engine.projects.tasks import Order


class TestStarting:
    def test_no_more_runs_than_the_limit(self, repo: Path, tmp_path: Path) -> None:
        """A task waits for a free slot, and starts by itself when there is one."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            stage.limit(runs=1)
            first, second = await stage.order("One"), await stage.order("Two")
            await stage.move()
            assert (await stage.task_of(second)).state is TaskState.OPEN
            await stage.finish(first, "a", "")
            await stage.move()
            assert (await stage.run_of(second)).live

        play(story)

    def test_no_more_runs_than_the_limit_although_two_ticks_start_them(self, repo: Path, tmp_path: Path) -> None:
        """A ready task and an answered question, looked at in the same moment, share the one free slot."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            stage.limit(runs=1)
            asking = await stage.order("Ask")
            await stage.move()
            await stage.signal(asking, '{"status": "questions", "questions": ["Which?"]}')
            await stage.exit(asking)
            await stage.move()
            await stage.engine.talk.answer(asking, ["That one."])
            await stage.order("Another")
            ticks = stage.engine.ticks
            await asyncio.gather(ticks["dispatch"].tick(), ticks["deliver"].tick())
            await stage.engine.settle()
            assert len(await stage.store.read(lambda store: store.live_runs())) == 1
            assert stage.engine.troubles.all() == []

        play(story)

    def test_a_start_that_fails_is_said_and_does_not_hang(self, repo: Path, tmp_path: Path) -> None:
        """The run ends with the reason, the task fails, and nothing is stuck."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            stage.processes.refusal = BadInput("There is no program of that name.")
            name = await stage.order()
            await stage.move()
            run = await stage.run_of(name)
            assert run.outcome is Outcome.FAILED
            assert "no program of that name" in run.reason
            assert (await stage.task_of(name)).state is TaskState.FAILED

        play(story)

    def test_a_start_that_is_not_possible_now_is_repeated(self, repo: Path, tmp_path: Path) -> None:
        """A machine without room is no reason to give a task up: the run waits, says why, and starts later."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            stage.processes.refusal = Unavailable("There is no room for another process.")
            name = await stage.order()
            await stage.move(troubled=True)
            run = await stage.run_of(name)
            assert (run.live, run.reason) == (True, "There is no room for another process.")

            stage.processes.refusal = None
            await stage.move(troubled=True)
            assert (await stage.run_of(name)).identity is not None

        play(story)

    def test_two_orders_at_once_get_two_agents(self, repo: Path, tmp_path: Path) -> None:
        """Also when both happen to choose the same name."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            stage.engine.tasks.random = iter([0.5] * 4 + [0.1, 0.9] * 50).__next__
            names = await asyncio.gather(stage.order("One"), stage.order("Two"))
            assert len(set(names)) == 2

        play(story)

    def test_the_prompt_and_the_environment_say_who_and_where(self, repo: Path, tmp_path: Path) -> None:
        """An agent finds its task, its name and the way to say that it is done."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order("Mend the login race")
            await stage.move()
            run = await stage.run_of(name)
            launch = stage.processes.started[run.id].launch
            assert "Mend the login race" in stage.prompt_of(run)
            assert launch.environment["WINDLASS_AGENT"] == name
            assert launch.environment["WINDLASS_RUN"] == run.id
            assert launch.environment["WINDLASS_PROJECT"] == str(repo)
            assert launch.stdin == launch.environment["WINDLASS_PROMPT"]

        play(story)


class TestReading:
    def test_one_that_nothing_holds_to_reading_is_refused(self, repo: Path, tmp_path: Path) -> None:
        """Neither flags nor a sandbox: before anything is created, and if the sandbox goes away, before it starts."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            reading = Order(
                path=str(repo),
                title="Look",
                provider="command",
                options={"command": "x"},
                permissions=Permissions.READ,
            )
            with pytest.raises(BadInput, match="command can't be held to reading") as refused:
                await stage.engine.tasks.add(reading)
            assert "--sandbox on" in refused.value.hint
            assert await stage.store.read(lambda store: store.unfinished_tasks()) == []
            stage.processes.keeper = SandboxKeeper("fake")
            _, agent = await stage.engine.tasks.add(reading)
            stage.processes.keeper = SandboxKeeper("fake", "It is gone.")
            await stage.move()
            run = await stage.run_of(agent.id)
            assert (run.outcome, run.identity) == (Outcome.FAILED, None)
            assert "can't be held to reading" in run.reason

        play(story)


class TestEnding:
    def test_a_run_that_ends_without_a_signal_is_reminded_once(self, repo: Path, tmp_path: Path) -> None:
        """The second run is told what was missing; after another silence the task fails."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order()
            await stage.move()
            await stage.exit(name)
            await stage.move()
            second = await stage.run_of(name)
            assert (second.number, second.cause) == (2, Cause.REMINDER)
            assert "exit code 0, but committed nothing" in stage.prompt_of(second)
            await stage.exit(name)
            await stage.move()
            assert (await stage.task_of(name)).state is TaskState.FAILED
            assert len(await stage.store.read(lambda store: store.runs_of(name))) == 2

        play(story)

    def test_a_question_waits_and_its_answer_wakes_the_agent(self, repo: Path, tmp_path: Path) -> None:
        """Asked, waiting, answered, resumed with the answer in the prompt."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order()
            await stage.move()
            await stage.signal(name, '{"status": "questions", "questions": [{"id": "q1", "question": "Which port?"}]}')
            await stage.exit(name)
            await stage.move()
            assert (await stage.task_of(name)).state is TaskState.WAITING
            page = await stage.engine.status.page(name)
            assert "Which port?" in page.questions[0].body

            await stage.engine.talk.answer(name, ["Use 8080."])
            await stage.move()
            second = await stage.run_of(name)
            assert (second.live, second.cause) == (True, Cause.MAIL)
            assert "Use 8080." in stage.prompt_of(second)
            with pytest.raises(Conflict):
                await stage.engine.talk.answer(name, ["Again."])

        play(story)

    def test_a_signal_given_while_the_process_lives_ends_the_run_after_a_while(
        self, repo: Path, tmp_path: Path
    ) -> None:
        """A program that has said done but does not leave is ended, and its word still counts."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order()
            await stage.move()
            await stage.commit(name, "a.txt", "")
            await stage.signal(name)
            await stage.move()
            assert (await stage.run_of(name)).live
            stage.clock.time += 60
            await stage.move()
            assert (await stage.run_of(name)).outcome is Outcome.DONE

        play(story)

    def test_a_stopped_run_is_stopped_and_stays_so(self, repo: Path, tmp_path: Path) -> None:
        """Stopping ends the run and cancels its task; no tick starts it again."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order()
            await stage.move()
            assert await stage.engine.runs.stop(name, "stopped by hand")
            await stage.move()
            run = await stage.run_of(name)
            assert (run.outcome, run.reason) == (Outcome.STOPPED, "stopped by hand")
            assert (await stage.task_of(name)).state is TaskState.CANCELLED
            assert not await stage.engine.runs.stop(name, "stopped by hand")

        play(story)

    def test_every_byte_of_output_is_kept_once(self, repo: Path, tmp_path: Path) -> None:
        """What a process says in pieces, also across a restart, reads back as one."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order()
            await stage.move()
            run = await stage.run_of(name)
            stage.processes.say(run.id, b"half a li")
            await stage.move()
            await stage.restart()
            stage.processes.say(run.id, b"ne\nand \xff more\n")
            await stage.move()
            await stage.exit(name)
            await stage.move()
            chunks = [chunk async for _, chunk in stage.engine.output.read(name, number=1)]
            assert b"".join(each.content for each in chunks) == b"half a line\nand \xff more\n"

        play(story)

    @pytest.mark.parametrize("first", [b"", b"my own words\n"])
    def test_a_foreign_file_in_the_place_of_the_output_is_named_and_left_alone(
        self, repo: Path, tmp_path: Path, first: bytes
    ) -> None:
        """What the agent said before is kept; the file of someone else is neither taken in nor redacted."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            stage.settings.settings = replace(stage.settings.settings, work=WorkSettings(environment=("MY_TOKEN",)))
            stage.processes.variables["MY_TOKEN"] = "tell-nobody-4711"
            name = await stage.order()
            await stage.move()
            begun = await stage.run_of(name)
            process = stage.processes.started[begun.id]
            stage.processes.say(begun.id, first)
            await stage.move()
            process.output[:], process.shared = b"the user's tell-nobody-4711\n", True
            await stage.exit(name)
            await stage.move()
            [run] = [run for run in await stage.store.read(lambda store: store.runs_of(name)) if run.number == 1]
            chunks = [chunk async for _, chunk in stage.engine.output.read(name, number=1)]
            assert b"".join(chunk.content for chunk in chunks) == first
            assert any("second name elsewhere" in fact for fact in run.evidence)
            assert bytes(process.output) == b"the user's tell-nobody-4711\n"

        play(story)

    def test_what_a_left_over_process_says_while_it_is_ended_is_kept(self, repo: Path, tmp_path: Path) -> None:
        """Bytes that arrive between the end of the program and the end of what it left behind are not lost."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order()
            await stage.move()
            ended = await stage.run_of(name)
            stop = stage.processes.stop

            async def ending(run: str, identity: Identity | None, *, grace: float, gently: str = "TERM") -> int:
                stage.processes.started[run].output += b"last words"
                return await stop(run, identity, grace=grace, gently=gently)

            stage.processes.stop = ending  # type: ignore[method-assign]  # a child that talks while it is ended
            await stage.exit(name)
            await stage.move()
            chunks = [chunk async for _, chunk in stage.engine.output.read(name, number=1)]
            assert b"".join(each.content for each in chunks) == bytes(stage.processes.started[ended.id].output)

        play(story)


class TestRestart:
    def test_a_run_that_ended_while_we_were_away_is_judged(self, repo: Path, tmp_path: Path) -> None:
        """Its exit code, its signal and its commits are all still there."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order()
            await stage.move()
            await stage.engine.close()
            await stage.finish(name, "a.txt", "")
            await stage.restart()
            await stage.move()
            run = await stage.run_of(name)
            assert (run.outcome, run.exit_code) == (Outcome.DONE, 0)
            assert (await stage.task_of(name)).state is TaskState.DONE

        play(story)

    def test_a_start_that_was_never_recorded_is_adopted_not_repeated(self, repo: Path, tmp_path: Path) -> None:
        """A process that carries the run's marker is the run; there is no second one."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order()
            await stage.move()
            run = await stage.run_of(name)
            await stage.forget_identity(run)
            pid = stage.processes.started[run.id].identity.pid
            await stage.restart()
            await stage.move()
            found = await stage.run_of(name)
            assert found.identity is not None
            assert found.identity.pid == pid

        play(story)

    def test_a_start_that_never_happened_is_made_good(self, repo: Path, tmp_path: Path) -> None:
        """An intent without a process is carried out by the next daemon."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order()
            await stage.move()
            run = await stage.run_of(name)
            await stage.forget_identity(run)
            del stage.processes.started[run.id]
            await stage.restart()
            await stage.move()
            assert (await stage.run_of(name)).identity is not None

        play(story)
