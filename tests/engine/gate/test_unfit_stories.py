"""Changes that could not land on any main: the author is told once what is wrong, then a person."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from stage import Stage, play

from windlass.core.nouns.change import ChangeState, Hold

Spoil = Callable[[Path], None]


def git(at: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=at, capture_output=True, text=True, check=True).stdout


def nest(tree: Path) -> None:
    """Commit a repository inside this one."""
    inner = tree / "vendor"
    inner.mkdir()
    git(inner, "init", "-q")
    git(inner, "commit", "-q", "--allow-empty", "-m", "Inner")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "Outer")


def begin_apart(tree: Path) -> None:
    """Begin the branch anew, with no history."""
    branch = git(tree, "branch", "--show-current").strip()
    git(tree, "checkout", "-q", "--orphan", "fresh")
    (tree / "own.txt").write_text("x\n")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "Anew")
    git(tree, "branch", "-f", branch)
    git(tree, "checkout", "-q", branch)


def add_submodules(tree: Path) -> None:
    """Commit a list of submodules."""
    (tree / ".gitmodules").write_text("")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "Modules")


class TestUnfit:
    @pytest.mark.parametrize(
        ("spoil", "said", "remedy"),
        [
            (nest, "vendor is a nested repository", "git rm --cached vendor"),
            (begin_apart, "no commit in common with main", "git rebase --root --onto origin/main"),
            (add_submodules, ".gitmodules is for submodules", "Take that out of .gitmodules"),
        ],
    )
    def test_the_author_is_told_once_then_a_person(
        self, repo: Path, tmp_path: Path, spoil: Spoil, said: str, remedy: str
    ) -> None:
        """It is no conflict with main, and merging main would not help: the second time, the change is held."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            stage.limit(returns=3)
            name = await stage.order()
            await stage.move()
            spoil(await stage.worktree(name))
            await stage.signal(name)
            await stage.exit(name)
            await stage.move()
            run = await stage.run_of(name)
            prompt = stage.prompt_of(run)
            assert run.number == 2 and said in prompt and remedy in prompt
            assert "conflict" not in (await stage.change_of(name)).reason

            await stage.finish(name, "more.txt", "x\n")
            await stage.move()
            change = await stage.change_of(name)
            assert (change.state, change.hold) == (ChangeState.HELD, Hold.HUMAN) and said in change.reason
            assert (await stage.run_of(name)).number == 2

        play(story)

    def test_it_lands_when_its_author_has_mended_it(self, repo: Path, tmp_path: Path) -> None:
        """With what it was told, an agent can help itself."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order()
            await stage.move()
            tree = await stage.worktree(name)
            nest(tree)
            await stage.signal(name)
            await stage.exit(name)
            await stage.move()
            git(tree, "rm", "-q", "--cached", "vendor")
            (tree / "vendor" / ".git").rename(tmp_path / "away")
            await stage.finish(name, "own.txt", "x\n")
            await stage.move()
            assert (await stage.change_of(name)).state is ChangeState.LANDED

        play(story)
