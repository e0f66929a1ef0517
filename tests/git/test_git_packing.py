"""Many landings in one hub: their refs and objects are packed, and nothing is lost; a second look costs little."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from gitkit import World

from windlass.git import adapter
from windlass.git.adapter import HubGit


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path).begin()


def loose(world: World) -> list[Path]:
    """The refs and objects of the hub in files of their own."""
    found = (*(world.hub / "refs").rglob("*"), *(world.hub / "objects").glob("??/*"))
    return [path for path in found if path.is_file()]


def steps_of(world: World) -> list[str]:
    """From now on, the names of the git commands that write."""
    steps: list[str] = []
    world.git = HubGit(world.state, environment=world.environment, step=steps.append)
    return steps


def test_a_hub_is_packed_after_many_removals_and_loses_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every ref leads where it led, and an object that no ref leads to is still there."""
    monkeypatch.setattr(adapter, "MOST_LOOSE", 3)

    async def remove(name: str) -> None:
        await world.change({f"{name}.txt": name}, name)
        agent, _ = await world.agent(name)
        await world.git.remove_worktree(world.project, agent)

    async def story() -> None:
        await remove("one")
        await remove("two")
        stray = world.run("--git-dir", str(world.hub), "hash-object", "-w", "--stdin", extra={})
        before = world.run("--git-dir", str(world.hub), "for-each-ref")
        assert len(loose(world)) > 10
        await remove("three")
        after = world.run("--git-dir", str(world.hub), "for-each-ref")
        assert {*before.splitlines()} <= {*after.splitlines()}
        assert [path for path in loose(world) if path.name != stray[2:]] == []
        assert world.run("--git-dir", str(world.hub), "cat-file", "-t", stray) == "blob"
        assert not world.run("--git-dir", str(world.hub), "fsck", "--no-dangling")
        await remove("four")
        assert await world.git.main(world.project) == world.tip()

    asyncio.run(story())


def test_a_hub_is_not_packed_while_a_worktree_is_looked_at(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next removal packs it."""
    monkeypatch.setattr(adapter, "MOST_LOOSE", 1)
    steps = steps_of(world)

    async def story() -> None:
        await world.change({"one.txt": "one"}, "one")
        one, path = await world.agent("one")
        two, _ = await world.agent("two")
        async with world.git._locks(str(path.with_name("two"))):
            await world.git.remove_worktree(world.project, one)
        assert "git.repack.after" not in steps
        await world.git.remove_worktree(world.project, two)
        assert "git.repack.after" in steps

    asyncio.run(story())


def test_a_worktree_that_is_as_it_was_seen_is_removed_without_a_second_snapshot(world: World) -> None:
    """No index is read, no tree written."""

    async def story() -> None:
        await world.change({"new.txt": "new"})
        agent, _ = await world.agent()
        steps[:] = []
        ref = await world.git.remove_worktree(world.project, agent)
        assert steps == ["git.update-ref.before", "git.update-ref.after"]
        assert world.run("--git-dir", str(world.hub), "show", f"{ref}:new.txt") == "new"

    steps = steps_of(world)
    asyncio.run(story())


@pytest.mark.parametrize("change", ["edited", "new", "staged", "removed", "committed", "linked"])
def test_what_changes_after_the_last_look_is_in_what_brings_a_worktree_back(world: World, change: str) -> None:
    """Whatever way it changed: it is looked at again."""

    async def story() -> None:
        await world.change({"new.txt": "new"})
        agent, path = await world.agent()
        await world.git.look(world.project, agent, "r2")
        if change == "edited":
            world.write({"new.txt": "old"}, path)
        elif change == "new":
            world.write({"more.txt": "more"}, path)
        elif change == "staged":
            world.write({"more.log": "more"}, path)
            world.run("add", "-f", "more.log", at=path)
        elif change == "removed":
            (path / "new.txt").unlink()
        elif change == "committed":
            world.commit({"more.txt": "more"}, at=path)
        else:
            (path / "dir").rename(path / "elsewhere")
            (path / "dir").symlink_to("elsewhere")
        ref = await world.git.remove_worktree(world.project, agent)
        names = world.run("--git-dir", str(world.hub), "ls-tree", "-r", "--name-only", ref).splitlines()
        known = {".gitignore", "a.txt", "b.txt", "dir/c.txt", "new.txt"}
        wanted = {
            "edited": known,
            "new": known | {"more.txt"},
            "staged": known | {"more.log"},
            "removed": known - {"new.txt"},
            "committed": known | {"more.txt"},
            "linked": known - {"dir/c.txt"} | {"dir", "elsewhere/c.txt"},
        }
        assert {*names} == wanted[change]
        if change == "edited":
            assert world.run("--git-dir", str(world.hub), "show", f"{ref}:new.txt") == "old"

    asyncio.run(story())
