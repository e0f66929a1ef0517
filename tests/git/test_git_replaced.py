"""Replaced objects (`git replace`): what we test and land is what a commit's name says, not what stands in for it."""

from __future__ import annotations

import asyncio

import pytest
from gitkit import World


def replace(world: World, old: str, new: str) -> None:
    world.run("--git-dir", str(world.hub), "replace", old, new)


@pytest.mark.parametrize("kind", ["commit", "blob"])
def test_what_replaces_an_object_of_the_hub_is_not_honoured(world: World, kind: str) -> None:
    """The gate merges, tests and lands the change itself, and the files that checks get are the change's own."""

    async def story() -> None:
        head = await world.change({"a.txt": "seen\n"})
        other = await world.change({"a.txt": "never reviewed\n"}, name="other")
        suffix = {"commit": "", "blob": ":a.txt"}[kind]
        old, new = (world.run("--git-dir", str(world.hub), "rev-parse", f"{each}{suffix}") for each in (head, other))
        replace(world, old, new)
        candidate = await world.git.stage(world.project, head, "Land")
        await world.git.trees.place(world.project, candidate.commit, world.folder / "checks")
        assert (world.folder / "checks/a.txt").read_text() == "seen\n"
        assert "never reviewed" not in await world.git.diff_of(world.project, head)
        await world.git.land(world.project, candidate)
        assert (world.repository / "a.txt").read_text() == "seen\n"
        assert world.run("show", "main:a.txt") == "seen"

    asyncio.run(story())
