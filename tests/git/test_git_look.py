"""Looking into a worktree: the branch, the snapshot, the diff, the removal."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from pathlib import Path

import pytest
from gitkit import World, an_agent

from windlass.core.errors import NotAllowed, NotFound


def content(world: World, ref: str, name: str) -> str:
    return world.run("--git-dir", str(world.hub), "cat-file", "blob", f"{ref}:{name}", at=world.folder)


class TestLook:
    def test_a_finished_worktree_is_clean(self, world: World) -> None:
        """All is committed: the branch is in the hub, and the snapshot is the branch itself."""

        async def story() -> None:
            agent, path = await world.agent()
            head = world.commit({"a.txt": "mine\n"}, at=path)
            tree = await world.git.look(world.project, agent, "r1")
            assert tree.clean and not tree.holes
            assert (tree.head, tree.branch, tree.commits, tree.snapshot) == (head, "work/coder", 1, head)

        asyncio.run(story())

    def test_what_is_not_committed_is_named_and_kept(self, world: World) -> None:
        """Changed, deleted, staged and new files are all in the snapshot; ignored ones are not."""

        async def story() -> None:
            agent, path = await world.agent()
            world.write({"a.txt": "changed\n", "neu/ü ü.txt": "new\n", "staged.txt": "s\n", "x.log": "noise"}, path)
            world.run("add", "staged.txt", at=path)
            (path / "b.txt").unlink()
            tree = await world.git.look(world.project, agent, "r1")
            assert set(tree.changed) == {"a.txt", "b.txt"}
            assert set(tree.untracked) == {"neu/ü ü.txt", "staged.txt"}
            assert content(world, "refs/windlass/snapshots/coder/r1", "neu/ü ü.txt") == "new"
            assert tree.commits == 0 and tree.head == world.tip()
            assert "staged.txt" in world.run("status", "--porcelain", at=path)

        asyncio.run(story())

    def test_a_file_hidden_from_the_agents_own_git_is_still_seen(self, world: World) -> None:
        """Assume-unchanged, skip-worktree and a private exclude hide nothing from us."""

        async def story() -> None:
            agent, path = await world.agent()
            world.run("update-index", "--assume-unchanged", "a.txt", at=path)
            world.run("update-index", "--skip-worktree", "b.txt", at=path)
            (path / ".git/info/exclude").write_text("*\n")
            world.write({"a.txt": "x\n", "b.txt": "y\n", "secret": "z\n"}, path)
            tree = await world.git.look(world.project, agent, "r1")
            assert (tree.changed, tree.untracked) == (("a.txt", "b.txt"), ("secret",))

        asyncio.run(story())

    def test_an_ignored_file_that_was_added_by_force_is_seen(self, world: World) -> None:
        """What the agent has staged is its work, ignored or not."""

        async def story() -> None:
            agent, path = await world.agent()
            world.write({"forced.log": "x\n", "other.log": "y\n"}, path)
            world.run("add", "-f", "forced.log", at=path)
            assert (await world.git.look(world.project, agent, "r1")).untracked == ("forced.log",)
            world.run("commit", "-qm", "x", at=path)
            assert (await world.git.look(world.project, agent, "r2")).clean

        asyncio.run(story())

    def test_a_file_that_became_a_folder_and_a_folder_that_became_a_link(self, world: World) -> None:
        """The snapshot has them as they are, and nothing behind the link."""

        async def story() -> None:
            agent, path = await world.agent()
            (path / "a.txt").unlink()
            world.write({"a.txt/inner": "x\n"}, path)
            shutil.rmtree(path / "dir")
            (path / "dir").symlink_to(world.home)
            tree = await world.git.look(world.project, agent, "r1")
            assert set(tree.changed) == {"a.txt", "dir/c.txt"}
            assert set(tree.untracked) == {"a.txt/inner", "dir"}
            assert not tree.holes
            assert content(world, tree.snapshot, "dir") == str(world.home)

        asyncio.run(story())

    def test_a_rebased_branch_replaces_the_old_one(self, world: World) -> None:
        """Agents may rewrite their own history."""

        async def story() -> None:
            agent, path = await world.agent()
            world.commit({"a.txt": "1\n"}, at=path)
            await world.git.look(world.project, agent, "r1")
            world.run("commit", "-q", "--amend", "-m", "Better", at=path)
            tree = await world.git.look(world.project, agent, "r2")
            assert tree.head == world.tip("HEAD", at=path) == world.tip("work/coder")
            assert tree.commits == 1

        asyncio.run(story())

    def test_many_commits_at_once_come_over(self, world: World) -> None:
        """Also when they become a pack, and when the clone has packed its refs."""

        async def story() -> None:
            agent, path = await world.agent()
            head = world.commit({f"many/{each}.txt": f"{each}\n" for each in range(150)}, at=path)
            world.run("pack-refs", "--all", at=path)
            world.run("gc", "-q", at=path)
            tree = await world.git.look(world.project, agent, "r1")
            assert tree.head == head and tree.clean
            world.run("--git-dir", str(world.hub), "fsck", "--connectivity-only")

        asyncio.run(story())

    def test_another_branch_that_is_checked_out_is_said(self, world: World) -> None:
        """The head stays that of the agent's own branch."""

        async def story() -> None:
            agent, path = await world.agent()
            world.run("checkout", "-q", "-b", "elsewhere", at=path)
            world.commit({"a.txt": "x\n"}, at=path)
            tree = await world.git.look(world.project, agent, "r1")
            assert (tree.branch, tree.head, tree.changed) == ("elsewhere", world.tip(), ("a.txt",))
            world.run("checkout", "-q", "--detach", at=path)
            assert (await world.git.look(world.project, agent, "r2")).branch == ""

        asyncio.run(story())

    def test_a_lost_worktree_is_said(self, world: World) -> None:
        """Its branch is kept, and still has a diff."""

        async def story() -> None:
            agent, path = await world.agent()
            world.commit({"a.txt": "kept\n"}, at=path)
            await world.git.look(world.project, agent, "r1")
            shutil.rmtree(path)
            with pytest.raises(NotFound, match="worktree of coder is gone"):
                await world.git.look(world.project, agent, "r2")
            assert "+kept" in await world.git.diff(world.project, agent)

        asyncio.run(story())

    def test_a_lost_branch_and_damaged_objects_are_holes(self, world: World) -> None:
        """The last commit known stays the head; the files are seen all the same."""

        async def story() -> None:
            agent, path = await world.agent()
            known = world.commit({"a.txt": "1\n"}, at=path)
            await world.git.look(world.project, agent, "r1")
            world.commit({"a.txt": "2\n"}, at=path)
            blob = world.run("rev-parse", "HEAD:a.txt", at=path)
            (path / ".git/objects" / blob[:2] / blob[2:]).unlink()
            tree = await world.git.look(world.project, agent, "r2")
            assert (tree.head, tree.changed) == (known, ("a.txt",))
            assert tree.holes and "work/coder" in tree.holes[0]

            world.run("update-ref", "-d", "refs/heads/work/coder", at=path)
            tree = await world.git.look(world.project, agent, "r3")
            assert tree.head == known and "gone" in tree.holes[0]

        asyncio.run(story())

    def test_a_git_folder_that_is_a_link_is_not_followed(self, world: World) -> None:
        """The user's own repository is not taken for the agent's."""

        async def story() -> None:
            agent, path = await world.agent()
            world.run("branch", "work/coder")
            world.commit({"a.txt": "the user's own\n"})
            world.run("branch", "-f", "work/coder")
            shutil.rmtree(path / ".git")
            (path / ".git").symlink_to(world.repository / ".git")
            tree = await world.git.look(world.project, agent, "r1")
            assert tree.branch == "" and "gone" in tree.holes[0]

        asyncio.run(story())


class TestHoles:
    def test_what_a_snapshot_cannot_hold_is_named_and_nothing_is_removed(self, world: World) -> None:
        """Nested repositories (with and without commits), and a FIFO in the place of a file."""

        async def story() -> None:
            agent, path = await world.agent()
            world.run("init", "-q", "nested", at=path)
            world.run("init", "-q", "full", at=path)
            world.commit({"x": "x"}, at=path / "full")
            world.write({"nested/y": "y"}, path)
            (path / "a.txt").unlink()
            os.mkfifo(path / "a.txt")
            tree = await world.git.look(world.project, agent, "r1")
            assert {hole.partition(":")[0] for hole in tree.holes} == {"nested/", "full/", "a.txt"}
            with pytest.raises(NotAllowed, match="full/: a nested repository"):
                await world.git.remove_worktree(world.project, agent)
            assert (path / "full/x").is_file()

        asyncio.run(story())

    def test_a_committed_nested_repository_is_a_hole_and_cannot_land(self, world: World) -> None:
        """Only its name is in the commit."""

        async def story() -> None:
            agent, path = await world.agent()
            world.run("init", "-q", "full", at=path)
            world.commit({"x": "x"}, at=path / "full")
            world.run("add", "full", at=path)
            world.run("commit", "-qm", "x", at=path)
            tree = await world.git.look(world.project, agent, "r1")
            assert tree.holes == ("full: a nested repository",)
            with pytest.raises(Exception, match="full is a nested repository"):
                await world.git.stage(world.project, tree.head, "x")

        asyncio.run(story())

    def test_a_huge_file_is_a_hole(self, world: World) -> None:
        """More than 50 MB are not copied into the hub."""

        async def story() -> None:
            agent, path = await world.agent()
            with (path / "huge").open("wb") as file:
                file.truncate((50 << 20) + 1)
            tree = await world.git.look(world.project, agent, "r1")
            assert tree.holes == ("huge: larger than 50 MB",) and not tree.clean

        asyncio.run(story())

    def test_a_socket_has_nothing_to_lose(self, world: World) -> None:
        """It is no file and no hole."""

        async def story() -> None:
            agent, path = await world.agent()
            with socket.socket(socket.AF_UNIX) as listener:
                here = Path.cwd()
                os.chdir(path)  # a socket's path must be short
                try:
                    listener.bind("s")
                finally:
                    os.chdir(here)
                tree = await world.git.look(world.project, agent, "r1")
            assert tree.clean and not tree.holes

        asyncio.run(story())


class TestShow:
    def test_a_branch_that_the_user_moved_is_left_alone(self, world: World) -> None:
        """The user's own commits on it are never lost."""

        async def story() -> None:
            agent, path = await world.agent()
            world.commit({"a.txt": "1\n"}, at=path)
            await world.git.look(world.project, agent, "r1")
            world.run("branch", "-f", "work/coder", "main")
            world.commit({"a.txt": "2\n"}, at=path)
            await world.git.look(world.project, agent, "r2")
            assert world.tip("work/coder") == world.tip("main")

        asyncio.run(story())

    def test_a_branch_that_the_user_has_checked_out_is_left_alone(self, world: World) -> None:
        """Whatever the user's own settings say about that."""

        async def story() -> None:
            world.run("config", "receive.denyCurrentBranch", "updateInstead")
            agent, path = await world.agent()
            first = world.commit({"a.txt": "1\n"}, at=path)
            await world.git.look(world.project, agent, "r1")
            world.run("checkout", "-q", "work/coder")
            world.commit({"a.txt": "2\n"}, at=path)
            await world.git.look(world.project, agent, "r2")
            assert world.tip("work/coder") == first
            world.run("checkout", "-q", "main")
            tree = await world.git.look(world.project, agent, "r3")
            assert world.tip("work/coder") == tree.head

        asyncio.run(story())

    def test_a_crash_between_saying_and_showing_does_not_freeze_the_branch(self, world: World) -> None:
        """What we were about to show is known as ours."""

        async def story() -> None:
            agent, path = await world.agent()
            world.commit({"a.txt": "1\n"}, at=path)
            await world.git.look(world.project, agent, "r1")
            world.run("--git-dir", str(world.hub), "update-ref", "-d", "refs/windlass/shown/work/coder")
            world.commit({"a.txt": "2\n"}, at=path)
            tree = await world.git.look(world.project, agent, "r2")
            assert world.tip("work/coder") == tree.head

        asyncio.run(story())

    def test_a_users_branch_called_work_only_hides_ours(self, world: World) -> None:
        """A branch that cannot be shown does not stop anything."""
        world.run("branch", "work")
        asyncio.run(world.change({"a.txt": "x\n"}))
        assert world.run("branch", "--list", "work*") == "work"

    def test_the_users_hooks_do_not_run(self, world: World) -> None:
        """Neither for a shown branch nor for a landing."""

        async def story() -> None:
            for name in ("pre-receive", "update", "post-receive", "reference-transaction", "post-merge", "pre-push"):
                hook = world.repository / ".git/hooks" / name
                hook.parent.mkdir(exist_ok=True)
                hook.write_text(f"#!/bin/sh\ntouch '{world.canary}'\n")
                hook.chmod(0o755)
            head = await world.change({"a.txt": "x\n"})
            await world.git.land(world.project, await world.git.stage(world.project, head, "x"))
            assert not world.canary.exists()

        asyncio.run(story())


class TestDiff:
    def test_it_is_against_where_the_branch_left_main(self, world: World) -> None:
        """Committed, uncommitted and new files; not what main did since."""

        async def story() -> None:
            agent, path = await world.agent()
            world.commit({"a.txt": "committed\n"}, at=path)
            world.write({"b.txt": "uncommitted\n", "new.txt": "new\n"}, path)
            world.commit({"dir/c.txt": "the user's\n"})
            diff = await world.git.diff(world.project, agent)
            assert all(f"+{each}" in diff for each in ("committed", "uncommitted", "new"))
            assert "the user's" not in diff

        asyncio.run(story())


class TestRemove:
    def test_all_can_be_brought_back(self, world: World) -> None:
        """Files, other branches and every stash are under rescue refs; the next removal takes another number."""

        async def story() -> None:
            agent, path = await world.agent()
            side = world.commit({"a.txt": "side\n"}, at=path)
            world.run("branch", "side", at=path)
            world.run("reset", "-q", "--hard", "HEAD~1", at=path)
            stashes = []
            for each in ("one", "two"):
                world.write({"b.txt": f"{each}\n"}, path)
                world.run("stash", at=path)
                stashes.append(world.tip("stash", at=path))
            world.write({"b.txt": "unfinished\n"}, path)
            (path / "out").symlink_to(world.home)
            ref = await world.git.remove_worktree(world.project, agent)
            assert ref == "refs/windlass/rescue/coder/1/tree"
            assert content(world, ref, "b.txt") == "unfinished"
            kept = world.run("--git-dir", str(world.hub), "for-each-ref", "refs/windlass/rescue/")
            assert all(stash in kept for stash in (side, *stashes))
            assert not path.exists() and (world.home / ".gitconfig").exists()
            assert [each.name for each in path.parent.iterdir()] == []

            await world.git.worktree(world.project, agent)
            assert await world.git.remove_worktree(world.project, agent) == "refs/windlass/rescue/coder/2/tree"

        asyncio.run(story())

    def test_locked_folders_are_removed_too(self, world: World) -> None:
        """A read-only cache does not stay for ever."""

        async def story() -> None:
            agent, path = await world.agent()
            world.write({"cache/inner/x.txt": "x"}, path)
            (path / "cache/inner").chmod(0o500)
            await world.git.remove_worktree(world.project, agent)
            assert not path.exists()

        asyncio.run(story())

    def test_the_ref_of_a_stranger_is_not_looked_for(self, world: World) -> None:
        """Removing what was never there says so."""
        with pytest.raises(NotFound):
            asyncio.run(world.git.remove_worktree(world.project, an_agent("nobody")))
