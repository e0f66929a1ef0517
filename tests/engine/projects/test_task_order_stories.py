"""An agent takes one task after the other: what waits, what is saved, what a stop ends."""

from __future__ import annotations

import pytest
from agent_stage import give, state
from stage import Stage, play

from windlass.core.errors import Conflict
from windlass.core.nouns.agent import Status
from windlass.core.nouns.task import TaskState
from windlass.engine.records.closing import end_task


class TestOneAfterTheOther:
    def test_a_second_task_waits_until_the_first_has_landed(self, stage: Stage) -> None:
        """Others go on meanwhile; then it begins at the newest main, in the same place, with a new session."""

        async def story() -> None:
            first, _ = await give(stage, "First")
            second, _ = await give(stage, "Second")
            third, _ = await give(stage, "Third", "reviewer")
            await stage.move()
            states = [await state(stage, each) for each in (first, second, third)]
            assert states == [TaskState.ACTIVE, TaskState.OPEN, TaskState.ACTIVE]

            stage.check_with("")  # it is held at the gate: the agent is not free yet
            await stage.finish("coder", "a.txt", "a")
            await stage.move()
            assert [await state(stage, first), await state(stage, second)] == [TaskState.LANDING, TaskState.OPEN]

            stage.check_with("true")
            await stage.move()
            assert [await state(stage, first), await state(stage, second)] == [TaskState.DONE, TaskState.ACTIVE]
            assert (await stage.run_of("coder")).number == 2
            assert (await stage.worktree("coder") / "a.txt").exists()

            await stage.finish("coder", "b.txt", "b")
            await stage.move()
            assert await state(stage, second) is TaskState.DONE
            assert (await stage.change_of("coder")).landing
            assert (stage.repo / "b.txt").exists()
            coder = await stage.agent("coder")
            assert coder.retired_at is None
            (view,) = [each for each in await stage.engine.status.every() if each.agent.name == "coder"]
            assert view.status is Status.COMPLETED

        play(story)

    def test_an_agent_whose_run_is_alive_begins_nothing_else(self, stage: Stage) -> None:
        """Its task may end under it, as a review does when all is settled: the next one waits for the process."""

        async def story() -> None:
            first, _ = await give(stage, "First")
            second, _ = await give(stage, "Second")
            await stage.move()
            active = await stage.engine.tasks.get(first.id)
            await stage.store.write(
                lambda store: end_task(store, active, TaskState.DONE, now=1_000.0, reason="settled")
            )
            await stage.move()
            runs = await stage.store.read(lambda store: store.runs_of("coder"))
            assert [(run.number, run.live) for run in runs] == [(1, True)]
            assert await state(stage, second) is TaskState.OPEN
            await stage.exit("coder")
            await stage.move()
            assert (await stage.run_of("coder")).task == second.id

        play(story)

    def test_what_a_failed_task_left_is_saved_and_told(self, stage: Stage) -> None:
        """The next one begins without it, with its own count of tries, and `doctor` finds nothing missing."""

        async def story() -> None:
            stage.limit(retries=0, reminders=0)
            first, _ = await give(stage, "First")
            await stage.move()
            await stage.commit("coder", "half.txt", "half")
            await stage.exit("coder", 1)
            await stage.move()
            assert await state(stage, first) is TaskState.FAILED

            stage.limit(retries=1)
            second, _ = await give(stage, "Second")
            await stage.move()
            assert not (await stage.worktree("coder") / "half.txt").exists()
            await stage.exit("coder", 1)
            await stage.move()
            assert (await stage.run_of("coder")).number == 3  # it was tried again

            page = await stage.engine.status.page("coder")
            assert ["is saved as refs/windlass/rescue/coder/1/tree" in report.body for report in page.reports] == [True]
            assert await state(stage, second) is TaskState.ACTIVE
            (item,) = [each for each in (await stage.engine.rescue.every()).items if each[0].saved.removed]
            assert item[1].files == ("half.txt",)
            findings = [finding async for finding in stage.engine.audit.findings(list)]
            assert [finding.detail for finding in findings if not finding.ok] == []

        play(story)

    def test_stopping_it_ends_what_waits_too(self, stage: Stage) -> None:
        """Nothing starts behind the back of whoever said stop; a later task does."""

        async def story() -> None:
            tasks = [(await give(stage, title))[0] for title in ("First", "Second")]
            await stage.move()
            assert await stage.engine.runs.stop("coder", "stopped by hand")
            await stage.move()
            assert [await state(stage, task) for task in tasks] == [TaskState.CANCELLED] * 2
            assert not await stage.engine.runs.stop("coder", "again")

            later, _ = await give(stage, "Later")
            await stage.move()
            assert await state(stage, later) is TaskState.ACTIVE

        play(story)

    def test_one_at_work_cannot_change_its_provider(self, stage: Stage) -> None:
        """Its session belongs to the one it was begun with."""

        async def story() -> None:
            first, _ = await give(stage, "First")
            with pytest.raises(Conflict, match="works on t1"):
                await give(stage, "Second", command="another")
            await stage.move()
            await stage.engine.runs.stop("coder", "stopped")
            await stage.move()
            assert await state(stage, first) is TaskState.CANCELLED
            _, coder = await give(stage, "Second", command="another")
            assert coder.options == {"command": "another"}

        play(story)

    def test_a_question_of_the_first_is_answered_while_a_second_waits(self, stage: Stage) -> None:
        """The answer goes to the task that asked."""

        async def story() -> None:
            first, _ = await give(stage, "First")
            second, _ = await give(stage, "Second")
            await stage.move()
            await stage.signal("coder", '{"status": "questions", "questions": ["Which?"]}')
            await stage.exit("coder")
            await stage.move()
            assert [await state(stage, each) for each in (first, second)] == [TaskState.WAITING, TaskState.OPEN]

            await stage.engine.talk.answer("coder", ["The blue one."])
            await stage.move()

            run = await stage.run_of("coder")
            assert run.task == first.id
            assert "The blue one." in stage.prompt_of(run)
            assert "You are Senior developer for the repo project." in stage.prompt_of(run)

        play(story)
