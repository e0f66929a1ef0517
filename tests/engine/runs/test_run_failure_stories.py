"""Runs that cannot start, lose their worktree or fail: what becomes of them, and who is told."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stage import Stage, play

from windlass.core.display import short
from windlass.core.errors import Conflict
from windlass.core.nouns.change import ChangeState
from windlass.core.nouns.run import Outcome
from windlass.core.nouns.task import TaskState
from windlass.core.runs.workdir import WorktreeState
from windlass.core.settings.schema import WorkSettings


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
        """The agent is stopped, and the reason does not promise a branch that has nothing of it."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order()
            await stage.move()
            shutil.rmtree(await stage.worktree(name))
            await stage.move()
            run = await stage.run_of(name)
            assert run.outcome is Outcome.FAILED
            assert run.reason == "its worktree is gone, and it had no commits that could be kept"

        play(story)

    def test_commits_outlive_the_worktree_they_were_made_in(self, repo: Path, tmp_path: Path) -> None:
        """They are taken in while their agent works: the reason names the commit, and the branch has it."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order()
            await stage.move()
            await stage.commit(name, "a.txt", "hours of work\n")
            stage.clock.time += 2
            await stage.move()
            shutil.rmtree(await stage.worktree(name))
            await stage.move()
            run, agent = await stage.run_of(name), await stage.agent(name)
            project = await stage.engine.projects.get(agent.project)
            kept = await stage.engine.ports.git.branch(project, agent)
            assert run.outcome is Outcome.FAILED
            assert run.reason == f"its worktree is gone; its branch is kept: {agent.branch} at {short(kept)}"
            assert "+hours of work" in await stage.engine.ports.git.diff(project, agent)

        play(story)

    def test_a_secret_is_not_kept_because_it_is_the_name_of_a_file(self, repo: Path, tmp_path: Path) -> None:
        """Neither in the evidence nor in what the agent is told, nor where a branch is called so."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            stage.settings.settings = replace(stage.settings.settings, work=WorkSettings(environment=("MY_TOKEN",)))
            stage.processes.variables["MY_TOKEN"] = "tell-nobody-4711"
            name = await stage.order()
            await stage.move()
            tree = await stage.worktree(name)
            (tree / "tell-nobody-4711.txt").write_text("x\n")
            (tree / ".git/HEAD").write_text("ref: refs/heads/tell-nobody-4711\n")
            await stage.signal(name)
            await stage.exit(name)
            await stage.move()
            first, second = await stage.store.read(lambda store: store.runs_of(name))
            assert "untracked: ****************.txt" in first.evidence and "on ****************" in first.reason
            assert "tell-nobody" not in f"{first}{stage.prompt_of(second)}"

        play(story)

    def test_a_repository_that_is_away_delays_nothing_but_landing_and_starting(
        self, repo: Path, tmp_path: Path
    ) -> None:
        """A run that ends meanwhile is judged from the hub; what it made lands, and others start, when it is back."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            stage.limit(runs=1)
            name, waiting = await stage.order(), await stage.order("Wait for a slot")
            await stage.move()
            assert (await stage.task_of(waiting)).state is TaskState.OPEN
            await stage.finish(name, "a.txt", "")
            os.rename(repo, tmp_path / "away")  # noqa: PTH104 - in one step, as a person's mv does
            await stage.move()
            assert (await stage.run_of(name)).outcome is Outcome.DONE
            assert (await stage.change_of(name)).state is ChangeState.QUEUED
            assert (await stage.task_of(waiting)).state is TaskState.OPEN

            os.rename(tmp_path / "away", repo)  # noqa: PTH104 - and back again in one step
            await stage.move()
            assert (await stage.change_of(name)).state is ChangeState.LANDED
            assert (await stage.task_of(waiting)).state is TaskState.ACTIVE

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
