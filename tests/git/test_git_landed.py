"""Landing where main is not checked out, the proof of a landing, and taking one back."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from gitkit import World
from test_git_landing import DAEMON, leftovers, staged, wait_until

from windlass.core import codec
from windlass.core.errors import Conflict, Unavailable
from windlass.core.nouns.change import LandingShape
from windlass.git import HubGit


class TestElsewhere:
    def test_a_main_that_nobody_has_checked_out_moves_alone(self, world: World) -> None:
        """The files of the branch that is checked out are not touched."""

        async def story() -> None:
            world.run("checkout", "-q", "-b", "side")
            world.write({"a.txt": "local\n"})
            candidate = await staged(world)
            await world.git.land(world.project, candidate)
            assert world.tip() == candidate.commit
            assert (world.repository / "a.txt").read_text() == "local\n"
            world.run("fsck", "--connectivity-only")

        asyncio.run(story())

    def test_a_locked_ref_is_named(self, world: World) -> None:
        """Nothing moves while another git holds main."""

        async def story() -> None:
            world.run("checkout", "-q", "-b", "side")
            candidate = await staged(world)
            (world.repository / ".git/refs/heads/main.lock").write_text("")
            with pytest.raises(Unavailable, match=r"main\.lock exists"):
                await world.git.land(world.project, candidate)
            assert world.tip() == candidate.before

        asyncio.run(story())

    @pytest.mark.parametrize("checked_out", [True, False])
    def test_a_main_that_moved_meanwhile_is_a_conflict(self, world: World, checked_out: bool) -> None:
        """What was tested is not what would be; main stays where the user put it."""

        async def story() -> None:
            candidate = await staged(world)
            moved = world.commit({"b.txt": "moved\n"})
            if not checked_out:
                world.run("checkout", "-q", "-b", "side")
            with pytest.raises(Conflict, match="has moved"):
                await world.git.land(world.project, candidate)
            assert world.tip() == moved

        asyncio.run(story())

    @pytest.mark.parametrize("shape", list(LandingShape))
    def test_a_main_rewound_by_the_user_is_a_conflict(self, world: World, shape: LandingShape) -> None:
        """Nothing that the user took back lands again by the way, also where it could pass for the change's own."""

        async def story() -> None:
            first = world.tip()
            world.commit({"b.txt": "second\n"})
            head = await world.change({"a.txt": "theirs\n"})
            candidate = await world.git.stage(world.project, head, "Land", shape=shape)
            world.run("reset", "-q", "--hard", first)
            with pytest.raises(Conflict, match="has moved"):
                await world.git.land(world.project, candidate)
            assert world.tip() == first

        asyncio.run(story())


class TestProof:
    def test_a_tree_that_is_not_the_tested_one_does_not_land(self, world: World) -> None:
        """The checks passed on one tree; only that one may become main."""

        async def story() -> None:
            candidate = await staged(world)
            other = world.run("--git-dir", str(world.hub), "rev-parse", f"{candidate.before}^{{tree}}")
            with pytest.raises(Conflict, match="does not hold the tree"):
                await world.git.land(world.project, replace(candidate, tree=other))
            assert world.tip() == candidate.before

        asyncio.run(story())

    def test_a_merge_with_something_smuggled_in_does_not_land(self, world: World) -> None:
        """The landed difference is the change's own, computed again; a wrong merge commit is found out."""

        async def story() -> None:
            candidate = await staged(world)
            hub = ("--git-dir", str(world.hub))
            blob = world.run(*hub, "rev-parse", f"{candidate.before}:b.txt")
            index = {"GIT_INDEX_FILE": str(world.folder / "index")}
            world.run(*hub, "read-tree", candidate.tree, extra=index)
            world.run(*hub, "update-index", "--add", "--cacheinfo", f"100644,{blob},smuggled", extra=index)
            tree = world.run(*hub, "write-tree", extra=index)
            parents = ("-p", candidate.before, "-p", candidate.commits[0])
            wrong = world.run(*hub, "commit-tree", tree, *parents, "-m", "x")
            for said in (tree, candidate.tree):  # what it says of itself is no proof
                with pytest.raises(Conflict, match="does not hold the tree"):
                    await world.git.land(world.project, replace(candidate, commit=wrong, tree=said))
            straight = world.run(*hub, "commit-tree", tree, "-p", candidate.before, "-m", "x")
            with pytest.raises(Conflict, match="was not made on main"):
                await world.git.land(world.project, replace(candidate, commit=straight, tree=tree))
            assert world.tip() == candidate.before

        asyncio.run(story())

    def test_the_landing_finishes_without_us(self, world: World) -> None:
        """A daemon that is killed while git moves the checkout leaves a whole landing behind."""
        files = {f"f{each}_txt": "x\n" * 500 for each in range(300)}
        candidate = asyncio.run(staged(world, **files))
        given = [codec.encode(each).decode() for each in (world.project, candidate)]
        daemon = subprocess.Popen(
            [sys.executable, "-c", DAEMON, str(world.state), *given],
            env=world.environment | {"PYTHONPATH": os.pathsep.join(sys.path)},
            start_new_session=True,
        )
        lock = world.repository / ".git/index.lock"
        wait_until(lambda: lock.exists() or world.tip() != candidate.before)
        daemon.kill()
        daemon.wait()
        wait_until(lambda: not lock.exists())

        world.git = HubGit(world.state, environment=world.environment)
        again = asyncio.run(world.git.land(world.project, candidate))
        assert again.after == world.tip() == candidate.commit
        assert world.run("status", "--porcelain") == "" and leftovers(world) == ""


class TestRevert:
    def test_it_takes_back_one_landing_and_keeps_later_ones(self, world: World) -> None:
        """Merged onto main, the commit undoes exactly what landed."""

        async def story() -> None:
            first = await world.git.land(world.project, await staged(world, "first", a_txt="ONE\ntwo\nthree\n"))
            await world.git.land(world.project, await staged(world, "second", b_txt="later\n"))
            commit = await world.git.revert(world.project, first, "work/undo-c1", "Undo c1")
            assert await world.git.branch_taken(world.project, "work/undo-c1")
            await world.git.land(world.project, await world.git.stage(world.project, commit, "Undo c1"))
            assert (world.repository / "a.txt").read_text() == "one\ntwo\nthree\n"
            assert (world.repository / "b.txt").read_text() == "later\n"

        asyncio.run(story())

    def test_what_was_built_upon_meanwhile_is_a_conflict(self, world: World) -> None:
        """A person decides then."""

        async def story() -> None:
            first = await world.git.land(world.project, await staged(world, "first", a_txt="ONE\n"))
            world.commit({"a.txt": "ONE more\n"})
            commit = await world.git.revert(world.project, first, "work/undo-c1", "Undo c1")
            with pytest.raises(Conflict, match=r"a\.txt"):
                await world.git.stage(world.project, commit, "Undo c1")

        asyncio.run(story())
