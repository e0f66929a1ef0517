"""A person pauses the landing in a project: nothing lands until it is resumed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from stage import Stage, play
from test_queue_stories import Git, branch, finished, now, reaches

from windlass.core.errors import Conflict
from windlass.core.nouns.change import ChangeState


class TestPause:
    def test_nothing_lands_while_the_queue_is_paused(self, repo: Path, git: Git, tmp_path: Path) -> None:
        """Not even after a restart, nor once its settings were read anew; then everything does."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            before = git("rev-parse", "main", cwd=repo)
            await stage.engine.queue.pause(str(repo), "release day")
            with pytest.raises(Conflict, match="paused already"):
                await stage.engine.queue.pause(str(repo), "")
            name = await finished(stage, "One", "a.txt")
            await stage.restart()
            await stage.engine.projects.at(str(repo), main="main")
            await stage.move()
            assert (await stage.change_of(name)).state is ChangeState.QUEUED
            assert git("rev-parse", "main", cwd=repo) == before
            [view] = await stage.engine.status.every()
            assert view.evidence == "c1 is queued: the queue is paused: release day"

            await stage.engine.queue.resume(str(repo))
            await stage.move()
            assert (await stage.change_of(name)).state is ChangeState.LANDED
            with pytest.raises(Conflict, match="not paused"):
                await stage.engine.queue.resume(str(repo))

        play(story)

    def test_a_pause_during_the_test_counts(self, repo: Path, git: Git, tmp_path: Path) -> None:
        """Main does not move after it was said; what has passed is not tested again when it goes on."""

        async def story() -> None:
            go, tests = tmp_path / "go", tmp_path / "tests"
            check = f"echo x >>{tests}; until [ -e {go} ]; do sleep 0.01; done"
            stage = Stage(repo, tmp_path / "home", checks=check)
            before = git("rev-parse", "main", cwd=repo)
            branch(repo, git, "by-hand", "hand.txt")
            key = (await stage.engine.queue.add(str(repo), "by-hand")).id
            moving = asyncio.create_task(stage.move())
            await reaches(stage, key, ChangeState.TESTING)
            await stage.engine.queue.pause(str(repo), "")
            go.touch()
            await moving
            assert (await now(stage, key)).state is ChangeState.QUEUED
            assert git("rev-parse", "main", cwd=repo) == before

            await stage.engine.queue.resume(str(repo))
            await stage.move()
            assert (await now(stage, key)).state is ChangeState.LANDED
            assert tests.read_text() == "x\n"

        play(story)

    def test_a_pause_in_the_very_moment_of_the_landing_counts(self, repo: Path, git: Git, tmp_path: Path) -> None:
        """The gate has chosen to land, and waits for its turn at main, which the pause has."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            before = git("rev-parse", "main", cwd=repo)
            branch(repo, git, "by-hand", "hand.txt")
            change = await stage.engine.queue.add(str(repo), "by-hand")
            turn = stage.engine.queue.moves[change.project]
            async with turn:
                moving = asyncio.create_task(stage.move())
                while not turn._waiters:  # noqa: ASYNC110 - no event tells that somebody waits for a lock
                    await asyncio.sleep(0.01)
                project = await stage.engine.projects.get(change.project)
                await stage.engine.queue._write_pause(project, stage.clock.now(), "")
            await moving
            assert (await now(stage, change.id)).state is not ChangeState.LANDED
            assert git("rev-parse", "main", cwd=repo) == before

        play(story)

    def test_a_landing_before_a_crash_is_written_down_although_the_queue_is_paused(
        self, repo: Path, git: Git, tmp_path: Path
    ) -> None:
        """Main has moved, and a pause does not hide it."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            branch(repo, git, "by-hand", "hand.txt")
            change = await stage.engine.queue.add(str(repo), "by-hand")
            project = await stage.engine.projects.at(str(repo))
            port = stage.engine.ports.git
            candidate = await port.stage(project, change.head, "Land it")
            await stage.engine._gate.record.staged([(change, candidate)])
            await port.land(project, candidate)
            await stage.engine.queue.pause(str(repo), "")
            await stage.restart()
            await stage.move()
            assert (await now(stage, change.id)).state is ChangeState.LANDED

        play(story)
