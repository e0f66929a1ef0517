"""Commits that can't be taken in: who is told why, and that no part of the task lands without them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from stage import Stage, play

from windlass.core.errors import Conflict
from windlass.core.nouns.run import Outcome
from windlass.core.nouns.task import TaskState
from windlass.core.runs.provider import DoneSign


async def commit_badly(stage: Stage, name: str) -> str:
    """Commit all that is there in a commit without an author, which git's own check refuses. Returns the good one."""
    tree = await stage.worktree(name)
    good = git(tree, "rev-parse", "HEAD")
    git(tree, "add", "-A")
    text = f"tree {git(tree, 'write-tree')}\nparent {good}\nauthor nobody\ncommitter A <a@b> 1 +0000\n\nx\n"
    bad = git(tree, "hash-object", "-w", "-t", "commit", "--literally", "--stdin", given=text)
    git(tree, "update-ref", f"refs/heads/{(await stage.agent(name)).branch}", bad)
    return good


def git(at: Path, *words: str, given: str = "") -> str:
    ran = subprocess.run(["git", *words], cwd=at, input=given, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


async def begun(repo: Path, home: Path) -> tuple[Stage, str]:
    """An agent that has committed one file, left another, said done, and was reminded of it."""
    stage = Stage(repo, home)
    name = await stage.order()
    await stage.move()
    await stage.commit(name, "first.txt", "1\n")
    (await stage.worktree(name) / "second.txt").write_text("2\n")
    await say_done(stage, name)
    return stage, name


async def say_done(stage: Stage, name: str) -> None:
    """The run ends and is judged; if its agent is reminded, it has rested and runs again."""
    await stage.signal(name)
    await stage.exit(name)
    await stage.move()
    stage.clock.time += 60
    await stage.move()


class TestRefusedCommits:
    def test_an_agent_is_told_why_and_all_lands_when_it_has_mended_it(self, repo: Path, tmp_path: Path) -> None:
        """What was taken in before does not land alone: the agent learns git's reason, and lands both."""

        async def story() -> None:
            stage, name = await begun(repo, tmp_path / "home")
            good = await commit_badly(stage, name)
            await say_done(stage, name)
            assert not (repo / "first.txt").exists()
            run = await stage.run_of(name)
            assert run.number == 3 and "missingEmail" in stage.prompt_of(run)

            git(await stage.worktree(name), "reset", "-q", "--soft", good)
            await stage.finish(name, "third.txt", "3\n")
            await stage.move()
            assert all((repo / f"{which}.txt").exists() for which in ("first", "second", "third"))

        play(story)

    def test_nothing_lands_of_a_task_whose_last_commit_stays_refused(self, repo: Path, tmp_path: Path) -> None:
        """After its reminders the task fails, the run has the reason as evidence, and the person is told of it."""

        async def story() -> None:
            stage, name = await begun(repo, tmp_path / "home")
            await commit_badly(stage, name)
            for _ in range(2):
                await say_done(stage, name)
            run, task = await stage.run_of(name), await stage.task_of(name)
            assert (run.outcome, task.state) == (Outcome.FAILED, TaskState.FAILED)
            assert "missingEmail" in task.reason and "missingEmail" in " ".join(run.evidence)
            said = await stage.store.read(lambda store: store.messages(f"task/{task.id}"))
            assert any("human" in message.to and "missingEmail" in message.body for message in said)
            assert not (repo / "first.txt").exists()

        play(story)

    def test_what_cannot_be_taken_in_is_not_checked_either(self, repo: Path, tmp_path: Path) -> None:
        """An agent that asks for the checks is not told how older commits do."""

        async def story() -> None:
            stage, name = await begun(repo, tmp_path / "home")
            await commit_badly(stage, name)
            with pytest.raises(Conflict, match="missingEmail"):
                await stage.engine.rehearsals.check((await stage.run_of(name)).id)

        play(story)

    def test_a_plain_command_is_told_why_too(self, repo: Path, tmp_path: Path) -> None:
        """It committed something, whatever became of it: it is not told that it committed nothing."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order()
            assert stage.engine.ports.providers.get("command").claim is DoneSign.EXIT
            await stage.move()
            await commit_badly(stage, name)
            await stage.exit(name)
            await stage.move()
            assert "missingEmail" in stage.prompt_of(await stage.run_of(name))

        play(story)
