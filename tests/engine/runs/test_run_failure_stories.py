"""Runs that cannot start, lose their worktree or fail: what becomes of them, and who is told."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from stage import Stage, play

from windlass.core.errors import Conflict
from windlass.core.nouns.run import Outcome
from windlass.core.nouns.task import TaskState
from windlass.core.runs.workdir import WorktreeState


class TestTrouble:
    def test_a_stop_while_a_run_is_being_judged_is_not_lost(self, repo: Path, tmp_path: Path) -> None:
        """Whoever was told that it stops finds it stopped, and nothing landed."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order()
            await stage.move()
            git = stage.engine.ports.git
            look = git.look

            async def slow(*given: Any) -> WorktreeState:
                found = await look(*given)
                await stage.engine.runs.stop(name, "stopped by hand")
                git.look = look  # type: ignore[method-assign]  # once is enough
                return found

            git.look = slow  # type: ignore[method-assign]  # a look that takes its time
            await stage.finish(name, "a.txt", "")
            await stage.move()
            assert (await stage.run_of(name)).outcome is Outcome.STOPPED
            assert (await stage.task_of(name)).state is TaskState.CANCELLED

        play(story)

    def test_a_worktree_that_is_gone_ends_the_run(self, repo: Path, tmp_path: Path) -> None:
        """The agent is stopped, and the reason says what was lost and what was not."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order()
            await stage.move()
            shutil.rmtree(await stage.worktree(name))
            await stage.move()
            run = await stage.run_of(name)
            assert run.outcome is Outcome.FAILED
            assert "its worktree is gone; its branch is kept" in run.reason

        play(story)

    def test_a_repository_that_is_away_delays_its_runs_and_nobody_elses(self, repo: Path, tmp_path: Path) -> None:
        """The run says why it is not judged, takes no slot, and is judged when the repository is back."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            stage.limit(runs=1)
            name, waiting = await stage.order(), await stage.order("Wait for a slot")
            await stage.move()
            assert (await stage.task_of(waiting)).state is TaskState.OPEN
            await stage.finish(name, "a.txt", "")
            os.rename(repo, tmp_path / "away")  # noqa: PTH104 - in one step, as a person's mv does
            await stage.move(troubled=True)
            run = await stage.run_of(name)
            assert run.live
            assert "can't be judged yet" in run.reason
            assert (await stage.task_of(waiting)).state is TaskState.ACTIVE

            os.rename(tmp_path / "away", repo)  # noqa: PTH104 - and back again in one step
            await stage.move(troubled=True)
            assert (await stage.run_of(name)).outcome is Outcome.DONE

        play(story)

    def test_mail_of_a_task_that_is_over_is_dropped(self, repo: Path, tmp_path: Path) -> None:
        """What nobody will read waits for nobody; an answer to a stopped agent is refused."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order()
            await stage.move()
            await stage.signal(name, '{"status": "questions", "questions": ["Which port?"]}')
            await stage.exit(name)
            await stage.move()
            await stage.engine.runs.stop(name, "stopped by hand")
            with pytest.raises(Conflict):
                await stage.engine.talk.answer(name, ["Use 8080."])
            assert await stage.store.read(lambda store: store.undelivered()) == []
            assert await stage.store.read(lambda store: store.open_asks()) == []

        play(story)
