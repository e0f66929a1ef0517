"""An agent whose clone leads to another repository: nothing of that comes into the hub."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from gitkit import World

from windlass.core.errors import NotAllowed

SECRET = "the user's other work\n"

Trick = Callable[[Path, Path], None]


def alternates(clone: Path, hidden: Path) -> None:
    with (clone / "objects/info/alternates").open("a") as file:
        file.write(f"{hidden}\n")


def alternates_of_alternates(clone: Path, hidden: Path) -> None:
    middle = clone.parent / "middle"
    (middle / "info").mkdir(parents=True)
    (middle / "info/alternates").write_text(f"{hidden}\n")
    alternates(clone, middle)


def linked_files(clone: Path, hidden: Path) -> None:
    for file in (path for path in hidden.rglob("*") if path.is_file()):
        place = clone / "objects" / file.relative_to(hidden)
        place.parent.mkdir(exist_ok=True)
        place.symlink_to(file)


def linked_folders(clone: Path, hidden: Path) -> None:
    for folder in (path for path in hidden.iterdir() if path.is_dir() and path.name != "info"):
        place = clone / "objects" / folder.name
        if place.is_dir():
            shutil.rmtree(place)
        place.symlink_to(folder)


def linked_objects(clone: Path, hidden: Path) -> None:
    shutil.rmtree(clone / "objects")
    (clone / "objects").symlink_to(hidden)


def linked_repository(clone: Path, hidden: Path) -> None:
    shutil.rmtree(clone)
    clone.symlink_to(hidden.parent)


TRICKS: tuple[Trick, ...] = (
    *(alternates, alternates_of_alternates),
    *(linked_files, linked_folders, linked_objects, linked_repository),
)


def hide(world: World) -> tuple[Path, list[str]]:
    """A repository that no agent may see. Returns its objects, and two commits: one packed, and one on top of it."""
    hidden = world.folder / "hidden"
    hidden.mkdir()
    world.run("init", "-q", "--initial-branch=work/coder", at=hidden)
    packed = world.commit({"secret.txt": SECRET}, at=hidden)
    world.run("repack", "-adq", at=hidden)
    return hidden / ".git/objects", [packed, world.commit({"more.txt": SECRET}, at=hidden)]


def knows(world: World, name: str) -> bool:
    """Whether the hub has an object."""
    return world.run("--git-dir", str(world.hub), "cat-file", "-t", name, ok=False) in ("commit", "blob", "tree", "tag")


@pytest.mark.parametrize("trick", TRICKS, ids=lambda trick: trick.__name__)
def test_a_hidden_repository_is_not_taken_for_the_agents_work(world: World, trick: Trick) -> None:
    """A branch or a tag at a commit that is not in the clone's own objects is a hole; the hub gets nothing of it."""

    async def story() -> None:
        agent, path = await world.agent()
        known = world.tip()
        hidden, (packed, loose) = hide(world)
        (path / ".git/refs/heads/work/coder").write_text(f"{loose}\n")
        (path / ".git/packed-refs").write_text(f"{packed} refs/tags/mine\n")
        trick(path / ".git", hidden)
        tree = await world.git.look(world.project, agent, "r1")
        assert tree.head == known and tree.commits == 0
        assert "work/coder" in tree.holes[0]
        with pytest.raises(NotAllowed):
            await world.git.remove_worktree(world.project, agent)
        assert not knows(world, packed) and not knows(world, loose)
        found = (await world.git.archive.examine(world.project)).foreign
        assert found and all(problem.startswith(str(path / ".git")) for problem in found)

    asyncio.run(story())


def test_a_hidden_tag_alone_keeps_the_worktree(world: World) -> None:
    """Where only another name leads elsewhere, the worktree is kept with the reason, and the hub gets nothing."""

    async def story() -> None:
        agent, path = await world.agent()
        hidden, (packed, _) = hide(world)
        (path / ".git/packed-refs").write_text(f"{packed} refs/tags/mine\n")
        alternates(path / ".git", hidden)
        with pytest.raises(NotAllowed, match=f"(?s)is kept.*{packed}"):
            await world.git.remove_worktree(world.project, agent)
        assert path.is_dir() and not knows(world, packed)

    asyncio.run(story())


def test_what_is_foreign_in_the_hub_is_found(world: World) -> None:
    """Alternates, grafts, links, hooks and refs that we did not make: by whom ever, they are named."""

    async def story() -> None:
        await world.agent()
        hidden, _ = hide(world)
        assert (await world.git.archive.examine(world.project)).foreign == ()
        world.run("--git-dir", str(world.hub), "update-ref", "refs/replace/x", "main")
        (world.hub / "objects/info/alternates").write_text(f"{hidden}\n")
        (world.hub / "info/grafts").write_text("")
        (world.hub / "hooks/post-update").write_text("")
        (world.hub / "objects/ab").symlink_to(hidden)
        found = (await world.git.archive.examine(world.project)).foreign
        for name in ("info/alternates", "info/grafts", "refs/replace/x", "hooks/post-update", "objects/ab"):
            assert any(name in problem for problem in found), name
        assert len(found) == 5

    asyncio.run(story())


class TestOwnObjects:
    def test_are_taken_in_after_the_agent_has_packed_them(self, world: World) -> None:
        """What `git gc` in the clone made of its objects is read like the objects themselves."""

        async def story() -> None:
            agent, path = await world.agent()
            world.commit({"a.txt": "first\n"}, at=path)
            world.run("gc", "-q", "--prune=now", at=path)
            head = world.commit({"b.txt": "second\n"}, at=path)
            assert [*(path / ".git/objects/pack").glob("*.pack")]
            tree = await world.git.look(world.project, agent, "r1")
            assert (tree.head, tree.commits, tree.holes) == (head, 2, ())

        asyncio.run(story())

    def test_are_taken_in_beside_a_planted_link(self, world: World) -> None:
        """What is not a plain object file is left out, and the rest is read."""

        async def story() -> None:
            agent, path = await world.agent()
            head = world.commit({"a.txt": "mine\n"}, at=path)
            objects = path / ".git/objects"
            (objects / "ff").mkdir(exist_ok=True)
            (objects / "ff" / ("0" * 38)).symlink_to("/dev/zero")
            (objects / "pack/pack-evil.pack").symlink_to("/etc/passwd")
            (objects / "pack/pack-evil.idx").symlink_to("/etc/passwd")
            (objects / "ab").symlink_to("/")
            tree = await world.git.look(world.project, agent, "r1")
            assert (tree.head, tree.holes) == (head, ())

        asyncio.run(story())

    def test_leave_nothing_behind(self, world: World) -> None:
        """After a look there is no second name for any file of the agent's."""

        async def story() -> None:
            agent, path = await world.agent()
            world.commit({"a.txt": "mine\n"}, at=path)
            await world.git.look(world.project, agent, "r1")
            assert [entry.name for entry in path.parent.iterdir()] == [path.name]
            files = [file for file in (path / ".git/objects").rglob("*") if file.is_file()]
            assert files and {file.stat().st_nlink for file in files} == {1}

        asyncio.run(story())


def private_objects(world: World) -> list[str]:
    """Objects of the person's repository that main does not lead to: a stash, a private branch, a staged file."""
    world.write({"a.txt": "stashed\n"})
    world.run("stash", "-q")
    world.run("checkout", "-q", "-b", "private")
    world.commit({"p.txt": "private\n"})
    world.run("checkout", "-q", "main")
    world.write({"staged.txt": "staged\n"})
    world.run("add", "staged.txt")
    return [world.run("rev-parse", name) for name in ("stash@{0}", "stash@{0}:a.txt", "private", ":staged.txt")]


def held_by_hub(world: World, names: list[str]) -> list[str]:
    asked = world.run("--git-dir", str(world.hub), "cat-file", "--batch-check", "--batch-all-objects")
    return [name for name in names if name in asked]


def test_the_hub_has_only_what_main_leads_to(world: World) -> None:
    """Neither a stash nor a private branch nor a staged file of the person's; all of main is there."""
    names = private_objects(world)
    assert held_by_hub(world, [asyncio.run(world.git.main(world.project))])
    assert held_by_hub(world, names) == []
    assert (asyncio.run(world.git.archive.examine(world.project))).foreign == ()


def test_a_hub_that_began_with_everything_drops_it(world: World) -> None:
    """When it is opened while nobody works; until then doctor names it."""
    names = private_objects(world)
    world.hub.parent.mkdir(parents=True)
    world.run("clone", "-q", "--bare", "--template=", "--single-branch", str(world.repository), str(world.hub))
    world.run("--git-dir", str(world.hub), "config", "include.path", "windlass.config")
    for folder in ("info", "windlass/indexes"):
        (world.hub / folder).mkdir(parents=True, exist_ok=True)
    assert held_by_hub(world, names) == names
    found = asyncio.run(world.git.archive.examine(world.project)).foreign
    assert [problem for problem in found if "holds more of your repository than main" in problem]
    tip = asyncio.run(world.git.main(world.project))
    assert held_by_hub(world, [*names, tip]) == [tip]
