"""A person moves main in the very moment in which a change lands: their move stands, and the change is tried again."""

from __future__ import annotations

import asyncio

import pytest
from gitkit import World

from windlass.core.errors import Conflict


def rewrite(world: World, tree: str, *parents: str) -> str:
    """The person's main is at another commit from now on, whatever it was at."""
    on = [part for parent in parents for part in ("-p", parent)]
    commit = world.run("commit-tree", tree, *on, "-m", "Mine")
    world.run("update-ref", "refs/heads/main", commit)
    return commit


@pytest.mark.parametrize("parents", [(), ("main",)], ids=["rewritten", "moved on"])
def test_main_is_swapped_only_where_it_was_when_proven(world: World, parents: tuple[str, ...]) -> None:
    """Nobody has main checked out, so that only the ref moves: not over a commit that came in between."""

    async def story() -> None:
        world.run("checkout", "-q", "-b", "side")
        head = await world.change({"a.txt": "theirs\n"})
        candidate = await world.git.stage(world.project, head, "Land")
        mine: list[str] = []
        world.act_at("git.push.after", lambda: mine.append(rewrite(world, "main^{tree}", *parents)))
        with pytest.raises(Conflict, match="has moved since"):
            await world.git.land(world.project, candidate)
        assert [world.tip()] == mine
        assert world.run("for-each-ref", "refs/windlass") == ""

    asyncio.run(story())


@pytest.mark.parametrize("kept", [True, False], ids=["with work of their own", "clean"])
def test_a_checkout_moves_on_only_from_where_main_was_when_proven(world: World, kept: bool) -> None:
    """A person takes a commit out of main in that moment: a fast-forward would bring it back, and does not."""

    async def story() -> None:
        first, second = world.tip(), world.commit({"b.txt": "taken out\n"})
        head = await world.change({"a.txt": "theirs\n"})
        candidate = await world.git.stage(world.project, head, "Land")
        if kept:
            world.write({"dir/c.txt": "my own\n"})
        world.act_at("git.merge.before", lambda: world.run("reset", "-q", "--keep", first))
        with pytest.raises(Conflict, match="moved while"):
            await world.git.land(world.project, candidate)
        assert world.tip() == first != second
        assert world.run("status", "--porcelain") == ("M dir/c.txt" if kept else "")

    asyncio.run(story())


@pytest.mark.parametrize(
    "switch", [("switch", "-q", "-c", "feature"), ("switch", "-q", "--detach")], ids=lambda each: each[-1]
)
def test_another_branch_is_not_moved_in_the_place_of_main(world: World, switch: tuple[str, ...]) -> None:
    """A person leaves main for another branch in that moment: it stays where they made it, and main where it was."""

    async def story() -> None:
        first = world.tip()
        candidate = await world.git.stage(world.project, await world.change({"a.txt": "theirs\n"}), "Land")
        world.write({"dir/c.txt": "my own\n"})
        world.act_at("git.merge.before", lambda: world.run(*switch))
        with pytest.raises(Conflict, match="moved while"):
            await world.git.land(world.project, candidate)
        assert world.run("rev-parse", "HEAD", "main").split() == [first, first]
        assert world.run("status", "--porcelain") == "M dir/c.txt"

    asyncio.run(story())


def test_a_branch_that_is_made_on_what_has_just_landed_stays_there(world: World) -> None:
    """A person leaves main for a new branch right after it has moved: the change has landed, and the branch stays."""

    async def story() -> None:
        candidate = await world.git.stage(world.project, await world.change({"a.txt": "theirs\n"}), "Land")
        world.act_at("git.merge.after", lambda: world.run("switch", "-q", "-c", "feature"))
        await world.git.land(world.project, candidate)
        assert world.run("rev-parse", "feature", "main").split() == [candidate.commit, candidate.commit]
        assert world.run("status", "--porcelain") == ""

    asyncio.run(story())
