"""Commits that the hub does not take in, and files that no snapshot holds: each is named, with the reason."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest
from gitkit import World

from windlass.core.errors import NotAllowed, Unavailable
from windlass.git import HubGit, program


def bad_commit(world: World, path: Path) -> str:
    """Put a commit without an author's name on the branch, which git's own check refuses."""
    tree, parent = world.tip("HEAD^{tree}", at=path), world.tip("HEAD", at=path)
    text = f"tree {tree}\nparent {parent}\nauthor nobody\ncommitter A <a@b> 1 +0000\n\nx\n"
    made = subprocess.run(
        ["git", "hash-object", "-w", "-t", "commit", "--literally", "--stdin"],
        input=text.encode(),
        cwd=path,
        env=world.environment,
        capture_output=True,
        check=True,
    )
    commit = made.stdout.decode().strip()
    (path / ".git/refs/heads/work/coder").write_text(f"{commit}\n")
    return commit


class TestRefusedCommits:
    def test_a_commit_that_gits_own_check_refuses_is_named_with_gits_words(self, world: World) -> None:
        """The commit before it stays the head; the branch is taken in again when it is mended."""

        async def story() -> None:
            agent, path = await world.agent()
            good = world.commit({"a.txt": "1\n"}, at=path)
            await world.git.look(world.project, agent, "r1")
            bad = bad_commit(world, path)
            tree = await world.git.look(world.project, agent, "r2")
            assert tree.head == good
            assert bad[:12] in tree.refused and "missingEmail" in tree.refused
            world.run("reset", "-q", "--soft", good, at=path)
            assert (await world.git.look(world.project, agent, "r3")).refused == ""

        asyncio.run(story())

    def test_commits_that_are_too_large_are_named_with_the_limit(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The agent learns how much may come at once."""
        monkeypatch.setattr(program, "LARGEST_OUTPUT", 1 << 20)

        async def story() -> None:
            agent, path = await world.agent()
            (path / "large").write_bytes(os.urandom(2 << 20))
            world.commit({"a.txt": "1\n"}, at=path)
            tree = await world.git.look(world.project, agent, "r1")
            assert tree.commits == 0 and "more than 1 MB" in tree.refused

        asyncio.run(story())

    def test_a_full_disk_is_no_fault_of_the_commits(self, world: World, tmp_path: Path) -> None:
        """The look fails and is repeated, and the agent is not blamed."""
        fake = tmp_path / "bin"
        fake.mkdir()
        (fake / "git").write_text(
            '#!/bin/sh\ncase "$*" in *unpack-objects*)'
            " echo 'fatal: unable to write file: No space left on device' >&2; exit 128;; esac\n"
            f'PATH={os.environ["PATH"]} exec git "$@"\n'
        )
        (fake / "git").chmod(0o755)

        async def story() -> None:
            agent, path = await world.agent()
            world.commit({"a.txt": "1\n"}, at=path)
            full = HubGit(world.state, environment=world.environment | {"PATH": f"{fake}:{os.environ['PATH']}"})
            with pytest.raises(Unavailable, match="No space left"):
                await full.look(world.project, agent, "r1")
            assert (await world.git.look(world.project, agent, "r1")).refused == ""

        asyncio.run(story())

    @pytest.mark.parametrize("content", ["ref: refs/heads/elsewhere\n", None])
    def test_a_branch_that_is_no_plain_commit_any_more_is_refused(self, world: World, content: str | None) -> None:
        """What was taken in before does not stand for what the branch is now."""

        async def story() -> None:
            agent, path = await world.agent()
            world.commit({"a.txt": "1\n"}, at=path)
            await world.git.look(world.project, agent, "r1")
            branch = path / ".git/refs/heads/work/coder"
            if content is None:
                branch.unlink()
            else:
                branch.write_text(content)
            assert "work/coder is gone" in (await world.git.look(world.project, agent, "r2")).refused

        asyncio.run(story())


class TestUnsavedFiles:
    def test_a_tracked_file_that_no_snapshot_holds_is_a_change(self, world: World) -> None:
        """A pipe in the place of a file, or a file that has become too large, is not taken for the committed one."""

        async def story() -> None:
            agent, path = await world.agent()
            world.commit({"new.txt": "1\n"}, at=path)
            (path / "a.txt").unlink()
            os.mkfifo(path / "a.txt")
            with (path / "b.txt").open("wb") as file:
                file.truncate((50 << 20) + 1)
            tree = await world.git.look(world.project, agent, "r1")
            assert (tree.changed, tree.refused) == (("a.txt", "b.txt"), "")
            assert tree.left == ("a.txt: neither a file nor a link", "b.txt: larger than 50 MB")

        asyncio.run(story())

    def test_a_file_whose_name_git_does_not_take_is_named(self, world: World) -> None:
        """Git passes it over without an error; it is not taken for saved."""

        async def story() -> None:
            agent, path = await world.agent()
            world.write({"git~1": "x\n", "new.txt": "y\n"}, path)
            tree = await world.git.look(world.project, agent, "r1")
            assert (tree.holes, tree.untracked) == (("git~1: a name that git does not take",), ("new.txt",))
            with pytest.raises(NotAllowed, match="git~1"):
                await world.git.remove_worktree(world.project, agent)

        asyncio.run(story())

    def test_a_large_file_that_is_committed_is_no_left_over(self, world: World) -> None:
        """What the hub has already is not missing; a change of it is."""

        async def story() -> None:
            agent, path = await world.agent()
            with (path / "large").open("wb") as file:
                file.truncate((50 << 20) + 1)
            world.commit({"a.txt": "1\n"}, at=path)
            tree = await world.git.look(world.project, agent, "r1")
            assert tree.clean and not tree.holes
            with (path / "large").open("r+b") as file:
                file.write(b"x")
            assert (await world.git.look(world.project, agent, "r2")).changed == ("large",)

        asyncio.run(story())
