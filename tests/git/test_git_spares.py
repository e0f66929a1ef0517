"""Checkouts that are kept ready for new worktrees."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest
from gitkit import World, an_agent

ROOM = 1 << 30
MANY = {f"deep/folder {number % 20}/file-{number}.txt": f"{number}\n" for number in range(1500)}
SOME = "deep/folder 7/file-7.txt"


@pytest.fixture
def large(world: World) -> World:
    """A repository that is worth it."""
    world.commit(MANY)
    return world


def spares(world: World) -> list[Path]:
    return sorted((world.state / "worktrees/p-1/.spares").glob("[!.]*"))


def told(story: Callable[[], Coroutine[None, None, None]]) -> None:
    asyncio.run(story())


def test_a_new_worktree_is_one_that_was_kept_ready(large: World) -> None:
    """Its files are those very files; git sees it clean, at main, on the agent's branch."""

    async def story() -> None:
        first, _ = await large.agent("first")
        await large.git.keep_spares(large.project, ROOM, like=first)
        ready = {(spare / "files" / SOME).stat().st_ino for spare in spares(large)}
        assert len(ready) == 2

        _, path = await large.agent("second")

        assert (path / SOME).stat().st_ino in ready
        assert len(spares(large)) == 1
        assert large.run("status", "--porcelain", "--branch", at=path) == "## work/second"
        assert large.tip("HEAD", at=path) == large.tip()
        await large.git.keep_spares(large.project, ROOM, like=first)
        assert len(spares(large)) == 2

    told(story)


def test_one_that_is_behind_main_is_brought_to_main(large: World) -> None:
    """Files that main has changed, added or removed meanwhile are as in main."""

    async def story() -> None:
        first, _ = await large.agent("first")
        await large.git.keep_spares(large.project, ROOM, like=first)
        large.run("rm", "-q", SOME)
        large.commit({"new.txt": "new\n", "a.txt": "changed\n"})

        agent, path = await large.agent("second")

        assert (path / "new.txt").read_text() + (path / "a.txt").read_text() == "new\nchanged\n"
        assert not (path / SOME).exists()
        assert large.run("status", "--porcelain", at=path) == ""
        assert (await large.git.look(large.project, agent, "r1")).changed == ()

    told(story)


def test_what_was_written_with_other_settings_is_not_taken(large: World) -> None:
    """Who wants other ends of lines gets them, and the old checkouts go."""

    async def story() -> None:
        first, _ = await large.agent("first")
        await large.git.keep_spares(large.project, ROOM, like=first)
        before = spares(large)
        large.run("config", "core.autocrlf", "true")

        _, path = await large.agent("second")

        assert (path / SOME).read_bytes() == b"7\r\n"
        await large.git.keep_spares(large.project, ROOM, like=first)
        assert len(spares(large)) == 2
        assert not {*before} & {*spares(large)}

    told(story)


@pytest.mark.parametrize("room", [0, 100_000])
def test_no_more_is_kept_than_there_is_room(large: World, room: int) -> None:
    """A setting says how much of the disk they may take; what is there already goes."""

    async def story() -> None:
        first, _ = await large.agent("first")
        if not room:
            await large.git.keep_spares(large.project, ROOM, like=first)
        await large.git.keep_spares(large.project, room, like=first)
        assert spares(large) == []

    told(story)


def test_a_small_repository_has_none(world: World) -> None:
    """Its checkouts take no time."""

    async def story() -> None:
        first, _ = await world.agent("first")
        await world.git.keep_spares(world.project, ROOM, like=first)
        assert spares(world) == []

    told(story)


def test_they_go_with_the_hub_and_half_made_ones_with_the_next_daemon(large: World) -> None:
    """Nothing of a project is left that has been forgotten, and nothing half done is taken for whole."""

    async def story() -> None:
        first, _ = await large.agent("first")
        await large.git.keep_spares(large.project, ROOM, like=first)
        half = large.state / "worktrees/p-1/.spares/.new-1"
        (half / "made/files").mkdir(parents=True)
        await large.git.sweep()
        assert not half.exists()
        await large.git.delete_hub(large.project)
        assert spares(large) == []

    told(story)


def test_an_agent_that_has_no_worktree_shows_nothing(world: World) -> None:
    """Its repository may be small: none is kept."""

    async def story() -> None:
        await world.git.keep_spares(world.project, ROOM, like=an_agent())
        assert spares(world) == []

    told(story)


def test_one_that_is_removed_is_taken_by_nobody(large: World) -> None:
    """An agent that starts meanwhile has all files: nothing is removed under it."""

    async def story() -> None:
        first, _ = await large.agent("first")
        await large.git.keep_spares(large.project, ROOM, like=first)
        _, made = await asyncio.gather(large.git.keep_spares(large.project, 0), large.agent("second"))
        assert large.run("status", "--porcelain", at=made[1]) == ""

    told(story)


def test_less_room_removes_what_is_too_much(large: World) -> None:
    """And nothing is made only to be thrown away."""

    async def story() -> None:
        first, _ = await large.agent("first")
        await large.git.keep_spares(large.project, ROOM, like=first)
        one = 12_000_000  # each of 1,500 files takes a block
        await large.git.keep_spares(large.project, one, like=first)
        assert len(spares(large)) == 1
        await large.git.keep_spares(large.project, 1000, like=first)
        assert spares(large) == []

    told(story)
