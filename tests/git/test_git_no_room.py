"""No room in the user's repository: nothing lands, nothing is left half written, and later it lands."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from gitkit import NOW, World

from small_disk import can_mount, fill, small_disk
from windlass.core.errors import NotAllowed, Unavailable
from windlass.core.nouns.change import Candidate
from windlass.git import HubGit

on_a_small_disk = pytest.mark.skipif(not can_mount(), reason="only root can mount a small disk")

LARGE = "".join(f"{number * 7919 % 104729}\n" for number in range(30_000))
FIRST = {"gone.txt": "gone\n", "z.txt": "zet\n", "dir/c.txt": "sea\n"}
FILES = {"a.txt": "mine\n", "b.txt": "more\n" * 9, "new/large.txt": LARGE, "new/small.txt": "small\n", "z.txt": LARGE}


@pytest.fixture
def narrow(world: World) -> World:
    """A world in which git can write no large file into the user's checkout, once there is a flag."""
    programs = world.folder / "programs"
    programs.mkdir()
    limited = f'[ -e "{programs}/flag" ] && case " $* " in *" merge "*) ulimit -f 64;; esac'
    (programs / "git").write_text(f'#!/bin/sh\n{limited}\nexec "{shutil.which("git")}" "$@"\n')
    (programs / "git").chmod(0o755)
    environment = world.environment | {"PATH": f"{programs}:{world.environment['PATH']}"}
    world.git = HubGit(world.state, environment=environment, now=lambda: NOW)
    return world


@pytest.fixture
def cramped(tmp_path: Path) -> Iterator[World]:
    """A world whose user has a small disk of their own."""
    world = World(tmp_path)
    with small_disk(world.repository, "8m"):
        yield world.begin()


def files(world: World) -> dict[str, str]:
    """Everything in the user's checkout."""
    top = world.repository
    paths = (path for path in top.rglob("*") if ".git" not in path.relative_to(top).parts and path.name != "ballast")
    return {str(path.relative_to(top)): path.read_text() if path.is_file() else "folder" for path in paths}


async def staged(world: World) -> Candidate:
    """A change that removes, changes and adds files, some of them large."""
    world.commit(FIRST)
    agent, path = await world.agent()
    (path / "gone.txt").unlink()
    world.commit(FILES, at=path)
    head = (await world.git.look(world.project, agent, "r1")).head
    return await world.git.stage(world.project, head, "Land")


def test_what_a_failed_move_wrote_is_put_back(narrow: World) -> None:
    """New files are gone, changed and removed ones are as they were, the user's own stay; with room, it lands."""

    async def story() -> None:
        candidate = await staged(narrow)
        narrow.write({"dir/c.txt": "my own edit\n", "notes.txt": "my own\n"})
        before, tip = files(narrow), narrow.tip()
        flag = narrow.folder / "programs/flag"
        flag.touch()
        with pytest.raises(Unavailable, match="What it had written is put back"):
            await narrow.git.land(narrow.project, candidate)
        assert files(narrow) == before and narrow.tip() == tip
        assert narrow.run("status", "--porcelain").split() == ["M", "dir/c.txt", "??", "notes.txt"]
        assert narrow.run("for-each-ref", "refs/windlass") == ""
        flag.unlink()
        await narrow.git.land(narrow.project, candidate)
        after = before | FILES | {"new": "folder"}
        del after["gone.txt"]
        assert files(narrow) == after

    asyncio.run(story())


def test_a_move_that_was_broken_off_is_put_back_before_the_next(world: World) -> None:
    """The machine died: files are half written and git's lock is left. The lock and what git wrote go, and it lands."""

    async def story() -> None:
        candidate = await staged(world)
        git = world.repository / ".git"
        move = f"{candidate.before}\n{candidate.commit}\n{world.repository}\n"
        (world.hub / "windlass/move").write_text(move)
        (git / "index.lock").write_bytes(b"")
        (world.repository / "gone.txt").unlink()
        world.write({"a.txt": "mine\n", "z.txt": LARGE[:4000], "new/large.txt": ""})
        await world.git.land(world.project, candidate)
        assert world.run("status", "--porcelain") == ""
        assert world.tip() == candidate.commit
        assert not (git / "index.lock").exists() and not (world.hub / "windlass/move").exists()

    asyncio.run(story())


def test_what_is_not_gits_is_not_touched(narrow: World) -> None:
    """A file that a person writes in that moment, where git has written or would have, stays and is named."""

    async def story() -> None:
        candidate = await staged(narrow)
        mine = {"a.txt": "my own\n", "new/small.txt": "my own, too\n"}
        (narrow.hub / "windlass/move").write_text(f"{candidate.before}\n{candidate.commit}\n{narrow.repository}\n")
        narrow.write(mine | {"new/large.txt": LARGE})
        with pytest.raises(NotAllowed, match=r"is in the way.*a.txt.*new/small.txt"):
            await narrow.git.land(narrow.project, candidate)
        assert files(narrow)["a.txt"] == "my own\n" and files(narrow)["new/small.txt"] == "my own, too\n"
        assert "new/large.txt" not in files(narrow)

    asyncio.run(story())


def leave(world: World, room: int) -> None:
    """Let the user's disk have only so many bytes left."""
    ballast = world.repository / "ballast"
    fill(ballast)
    os.truncate(ballast, ballast.stat().st_size - room)


@on_a_small_disk
def test_a_full_disk_is_seen_before_anything_is_written(cramped: World) -> None:
    """The reason says how much is needed, the checkout is as it was, and with room it lands."""

    async def story() -> None:
        candidate = await staged(cramped)
        before = files(cramped)
        leave(cramped, 700_000)
        with pytest.raises(Unavailable, match="has no room: this change needs"):
            await cramped.git.land(cramped.project, candidate)
        assert files(cramped) == before
        (cramped.repository / "ballast").unlink()
        await cramped.git.land(cramped.project, candidate)
        assert files(cramped)["new/large.txt"] == LARGE

    asyncio.run(story())


@on_a_small_disk
def test_a_disk_that_runs_full_meanwhile_leaves_nothing_half_written(cramped: World) -> None:
    """What git has written is removed first, so that there is room for what was there."""

    async def story() -> None:
        candidate = await staged(cramped)
        before = files(cramped)
        cramped.act_at("git.merge.before", lambda: leave(cramped, 250_000))
        with pytest.raises(Unavailable, match="What it had written is put back"):
            await cramped.git.land(cramped.project, candidate)
        assert files(cramped) == before
        (cramped.repository / "ballast").unlink()
        assert cramped.run("status", "--porcelain") == ""
        await cramped.git.land(cramped.project, candidate)
        assert files(cramped)["new/large.txt"] == LARGE

    asyncio.run(story())
