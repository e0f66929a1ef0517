"""Glancing at agents' work: what only real git knows, and that nothing of it stays."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from gitkit import World

from windlass.core.radar.collisions import QuickLook, Track, may_clash


async def glimpse(world: World, name: str, files: Mapping[str, str]) -> QuickLook:
    agent, path = await world.agent(name)
    world.write(files, path)
    return await world.git.quick_look(world.project, agent)


def objects(world: World) -> set[str]:
    """Every object of the hub that is not in a pack."""
    return {str(path.relative_to(world.hub)) for path in (world.hub / "objects").rglob("*") if path.is_file()}


def kept(seen: QuickLook) -> int:
    """How many objects a glimpse has for itself."""
    return sum(path.is_file() for path in Path(seen.kept).rglob("*"))


def both(one: QuickLook, other: QuickLook) -> bool:
    return may_clash(Track(agent="one", look=one), Track(agent="other", look=other))


class TestNothingStays:
    def test_neither_a_glance_nor_a_merge_leaves_an_object_in_the_hub(self, world: World) -> None:
        """Nothing in a hub is ever pruned, so what is looked at every minute must not be written there."""

        async def story() -> None:
            await world.agent("one"), await world.agent("other")
            before = objects(world)
            one = await glimpse(world, "one", {"a.txt": "one\nmine\nthree\n"})
            other = await glimpse(world, "other", {"a.txt": "zero\none\ntwo\nthree\nfour\n"})
            assert await world.git.clash(world.project, one, other) == (), "a new file came out of it"
            assert objects(world) == before
            assert not list((world.hub / "windlass").glob("tmp*"))

        asyncio.run(story())

    def test_the_next_glance_empties_what_the_last_one_kept(self, world: World) -> None:
        """However often an agent is looked at, one glimpse of it is kept."""

        async def story() -> None:
            sizes = []
            for turn in range(3):
                seen = await glimpse(world, "one", {"a.txt": f"turn {turn}\n"})
                sizes.append(kept(seen))
            assert sizes == [3, 3, 3], "a blob, a tree and a commit"
            await world.git.sweep()
            assert kept(seen) == 0

        asyncio.run(story())

    def test_it_goes_with_its_worktree(self, world: World) -> None:
        """Nothing is kept of an agent that is no more."""

        async def story() -> None:
            agent, _ = await world.agent("one")
            seen = await glimpse(world, "one", {"a.txt": "mine\n"})
            await world.git.remove_worktree(world.project, agent)
            assert kept(seen) == 0

        asyncio.run(story())

    def test_no_driver_that_an_agent_names_executes(self, world: World) -> None:
        """A merge driver in an agent's settings and attributes is not asked."""

        async def story() -> None:
            works = []
            for name in ("one", "other"):
                _, path = await world.agent(name)
                world.run("config", "merge.evil.driver", f"touch '{world.canary}'", at=path)
                works.append(await glimpse(world, name, {"a.txt": f"{name}\n", ".gitattributes": "* merge=evil\n"}))
            assert "a.txt" in await world.git.clash(world.project, *works)
            assert not world.canary.exists()

        asyncio.run(story())


class TestWhatGitFinds:
    """Each of these clashes, and the rule that spares a merge does not spare it."""

    def test_lines_apart_from_each_other_merge(self, world: World) -> None:
        """The same file is no conflict by itself."""

        async def story() -> None:
            world.commit({"long.txt": "".join(f"{each}\n" for each in range(30))})
            lines = [f"{each}\n" for each in range(30)]
            one = await glimpse(world, "one", {"long.txt": "".join(["first\n", *lines[1:]])})
            other = await glimpse(world, "other", {"long.txt": "".join([*lines[:-1], "last\n"])})
            assert both(one, other)
            assert await world.git.clash(world.project, one, other) == ()

        asyncio.run(story())

    def test_a_file_where_another_has_a_folder(self, world: World) -> None:
        """Both are new, and no name is the same."""

        async def story() -> None:
            one = await glimpse(world, "one", {"thing": "a file\n"})
            other = await glimpse(world, "other", {"thing/part.txt": "in a folder\n"})
            assert not one.files & other.files
            assert both(one, other) and both(other, one)
            assert await world.git.clash(world.project, one, other)

        asyncio.run(story())

    def test_something_new_in_a_folder_that_another_has_renamed(self, world: World) -> None:
        """Git can't know where it belongs; no file is changed by both."""

        async def story() -> None:
            world.commit({f"old/{each}.txt": f"{each}\n" * 20 for each in "xyz"} | {"old/deep/w.txt": "w\n" * 20})
            _, path = await world.agent("mover")
            world.run("mv", "old", "fresh", at=path)
            one = await glimpse(world, "mover", {})
            for name in ("old/new.txt", "old/deep/new.txt"):
                other = await glimpse(world, f"adds-{len(name)}", {name: "new\n"})
                assert not one.files & other.files
                assert both(one, other) and both(other, one), name
                assert await world.git.clash(world.project, one, other), name

        asyncio.run(story())

    def test_a_removed_file_that_another_has_edited(self, world: World) -> None:
        """One side has nothing to merge into."""

        async def story() -> None:
            _, path = await world.agent("one")
            (path / "a.txt").unlink()
            one = await glimpse(world, "one", {})
            other = await glimpse(world, "other", {"a.txt": "edited\n"})
            assert await world.git.clash(world.project, one, other) == ("a.txt",)

        asyncio.run(story())

    def test_names_that_are_hard_to_write(self, world: World) -> None:
        """Spaces, quotes and letters of other languages come through."""

        async def story() -> None:
            one = await glimpse(world, "one", {"neu/ü \"x'.txt": "mine\n"})
            other = await glimpse(world, "other", {"neu/ü \"x'.txt": "theirs\n"})
            assert await world.git.clash(world.project, one, other) == ("neu/ü \"x'.txt",)

        asyncio.run(story())
