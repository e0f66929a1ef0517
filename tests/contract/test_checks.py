"""What every implementation of the `Checks` port promises: the real one with a shell, and the fake."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import pytest
from git_stages import STAGES, GitStage, MemoryGit, RealGit, an_agent

from fakes import FakeChecks
from windlass.checks.command import CommandChecks
from windlass.core.errors import BadInput
from windlass.core.nouns.change import Candidate
from windlass.core.ports import Checks
from windlass.core.settings.schema import CheckSettings
from windlass.process.sandbox.bubblewrap import Bubblewrap
from windlass.process.shell import CommandShell
from windlass.process.starting.spawner import Spawner

SETTINGS = CheckSettings(command="cat a.txt; test ! -e broken || exit 3", timeout_seconds=60)
VANISH = CheckSettings(command="kill -9 $$", timeout_seconds=60)


class ChecksStage(Protocol):
    """A port under test on a repository."""

    port: Checks

    @property
    def git(self) -> GitStage: ...


class RealChecks:
    """CommandChecks, on real trees."""

    def __init__(self, path: Path) -> None:
        self.git = git = RealGit(path)
        self.port: Checks = CommandChecks(
            path / "state",
            f"home-{os.getpid()}",
            trees=git.hub.trees,
            shell=CommandShell(Bubblewrap(), Spawner()),
            environment=os.environ,
        )


class MemoryChecks:
    """FakeChecks, with the same commands as functions."""

    def __init__(self, path: Path) -> None:
        self.git = git = MemoryGit(path)
        self.port: Checks = FakeChecks(git.fake, {SETTINGS.command: _look, VANISH.command: lambda _: (None, "")})


def _look(files: Mapping[str, str]) -> tuple[int | None, str]:
    return (3 if "broken" in files else 0), files["a.txt"]


CHECKS: dict[str, Callable[[Path], ChecksStage]] = {"command": RealChecks, "fake": MemoryChecks}


@pytest.fixture(params=CHECKS)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> ChecksStage:
    return CHECKS[request.param](tmp_path)


async def staged(stage: ChecksStage, **edits: str) -> Candidate:
    git = stage.git
    path, _ = await git.port.worktree(git.project, an_agent())
    git.agent_commits(path, {name.replace("_", "."): text for name, text in edits.items()})
    head = (await git.port.look(git.project, an_agent(), "r1")).head
    return await git.port.stage(git.project, head, "Land it")


def test_every_git_has_its_checks() -> None:
    """The two suites know the same pairs of real thing and stand-in."""
    assert len(CHECKS) == len(STAGES)


def test_a_passed_check_names_its_tree_and_command(stage: ChecksStage) -> None:
    """It ran on the candidate's tree, with the agent's files in it, and its output is kept."""

    async def story() -> None:
        candidate = await staged(stage, a_txt="mine\n")
        result, output = await stage.port.run(stage.git.project, candidate, SETTINGS, 12.5, sandbox=None)
        assert (result.passed, result.exit_code, result.reason) == (True, 0, "")
        assert (result.tree, result.command, result.started_at) == (candidate.tree, SETTINGS.command, 12.5)
        assert output == "mine\n"

    asyncio.run(story())


def test_a_failed_check_says_how(stage: ChecksStage) -> None:
    """By its exit code, with its output."""

    async def story() -> None:
        candidate = await staged(stage, a_txt="mine\n", broken="")
        result, output = await stage.port.run(stage.git.project, candidate, SETTINGS, 0.0, sandbox=None)
        assert (result.passed, result.exit_code, result.reason, output) == (False, 3, "exit code 3", "mine\n")

    asyncio.run(story())


def test_each_tree_is_judged_for_itself(stage: ChecksStage) -> None:
    """What an earlier candidate had is not there any more."""

    async def story() -> None:
        bad = await staged(stage, broken="")
        assert not (await stage.port.run(stage.git.project, bad, SETTINGS, 0.0, sandbox=None))[0].passed
        path, _ = await stage.git.port.worktree(stage.git.project, an_agent())
        stage.git.agent_commits(path, {"broken": None})
        good = await staged(stage, a_txt="mended\n")
        result, output = await stage.port.run(stage.git.project, good, SETTINGS, 0.0, sandbox=None)
        assert (result.passed, output) == (True, "mended\n")

    asyncio.run(story())


def test_a_check_that_is_killed_has_not_passed(stage: ChecksStage) -> None:
    """However it ended, it is not green."""

    async def story() -> None:
        candidate = await staged(stage, a_txt="mine\n")
        result, _ = await stage.port.run(stage.git.project, candidate, VANISH, 0.0, sandbox=None)
        assert not result.passed
        assert result.reason

    asyncio.run(story())


@pytest.mark.parametrize("command", ["", "  "])
def test_without_a_command_there_is_no_verdict(stage: ChecksStage, command: str) -> None:
    """Nothing is called tested that was not."""

    async def story() -> None:
        candidate = await staged(stage, a_txt="mine\n")
        with pytest.raises(BadInput):
            await stage.port.run(stage.git.project, candidate, CheckSettings(command=command), 0.0, sandbox=None)

    asyncio.run(story())
