"""The gits that stay and answer, and refs read as files: never behind what git itself would say."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest
from gitkit import World

from windlass.git.program import GitProgram, no_step
from windlass.git.questions import MOST_GITS, GitObject
from windlass.git.refs import HubRefs
from windlass.git.user_repository import UserRepository


def program(world: World) -> GitProgram:
    return GitProgram(world.environment, no_step)


def living(folder: Path) -> list[int]:
    """The gits that stay for a repository."""
    wanted = f"--git-dir={folder}".encode()
    return [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/cmdline") if wanted in _words(path)]


def _words(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().split(b"\0")
    except OSError:
        return []


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path).begin()


def test_a_git_that_stays_knows_objects_and_refs_made_since(world: World) -> None:
    """Loose ones and packed ones, and a branch that has moved."""
    place, git = world.repository / ".git", program(world)

    async def story() -> None:
        path = str(world.repository)
        assert await git.object_of_theirs(path, "refs/heads/main") == GitObject(world.tip(), "commit")
        for _ in range(2):
            made = world.commit({"a.txt": world.tip()})
            assert await git.object_of_theirs(path, "refs/heads/main") == GitObject(made, "commit")
            assert await git.tree_of(place, made) == world.tip(f"{made}^{{tree}}")
            assert await git.parents_of(place, made) == (world.tip(f"{made}^"),)
            world.run("gc", "-q")
        assert len(living(place)) == 2  # one with the user's settings, one with ours
        git.close()
        assert not living(place)

    asyncio.run(story())


def test_a_git_that_was_killed_or_whose_repository_was_replaced_is_started_again(world: World) -> None:
    """The answer is of the repository that is there now."""
    git, path = program(world), str(world.repository)

    async def tip() -> str:
        found = await git.object_of_theirs(path, "refs/heads/main")
        assert found
        return found.name

    async def story() -> None:
        assert await tip() == world.tip()
        os.kill(living(world.repository / ".git")[0], 9)
        assert await tip() == world.tip()
        shutil.rmtree(world.repository / ".git")
        world.run("init", "-q", "--object-format=sha256", "--initial-branch=main")
        world.commit({})
        assert await tip() == world.tip()
        git.close()

    asyncio.run(story())


def test_an_answer_that_was_broken_off_is_not_taken_for_the_next_one(world: World) -> None:
    """A question that is cancelled leaves half an answer; who asks next gets its own."""
    git, hub = program(world), world.repository / ".git"
    head, before = world.commit({"a.txt": "two"}), world.tip("HEAD^")

    async def story() -> None:
        await git.kind(hub, head)
        asked = asyncio.ensure_future(git.tree_of(hub, head))
        await asyncio.sleep(0)
        asked.cancel()
        assert await git.tree_of(hub, before) == world.tip(f"{before}^{{tree}}")
        git.close()

    asyncio.run(story())


def test_only_so_many_gits_stay(world: World) -> None:
    """Those of the repositories that were asked last."""
    git = program(world)
    copies = [world.folder / f"copy-{number}" for number in range(MOST_GITS + 2)]
    for copy in copies:
        world.run("clone", "-q", str(world.repository), str(copy))

    async def story() -> None:
        for copy in copies:
            await git.kind(copy / ".git", "HEAD")
        assert [bool(living(copy / ".git")) for copy in copies] == [False] * 2 + [True] * MOST_GITS
        git.close()

    asyncio.run(story())


def test_what_is_missing_or_too_large_is_asked_of_a_git_of_its_own(world: World) -> None:
    """A commit whose message is megabytes long has a tree, too; and what is no commit has none."""
    git, hub = program(world), world.repository / ".git"
    world.write({"message": "word " * 400_000})
    world.run("commit", "-q", "--allow-empty", "-F", "message")

    async def story() -> None:
        assert await git.tree_of(hub, "HEAD") == world.tip("HEAD^{tree}")
        assert await git.kind(hub, "0" * 40) == ""
        assert await git.kind(hub, f"{world.tip()}^{{tree}}") == "tree"
        git.close()

    asyncio.run(story())


def test_refs_of_a_hub_are_read_as_git_reads_them(world: World) -> None:
    """Loose, packed, packed and moved since, and gone."""
    hub, refs = world.repository / ".git", HubRefs()
    first, second = world.tip(), world.commit({"a.txt": "two"})
    world.run("update-ref", "refs/windlass/lost/one", first)
    world.run("update-ref", "refs/windlass/lost/one-more", second)
    for _ in range(2):
        assert refs.find(hub, "refs/windlass/lost/one") == first
        assert refs.below(hub, "refs/windlass/lost/") == {
            "refs/windlass/lost/one": first,
            "refs/windlass/lost/one-more": second,
        }
        world.run("pack-refs", "--all")
    world.run("update-ref", "refs/windlass/lost/one", second)
    assert refs.find(hub, "refs/windlass/lost/one") == second
    world.run("update-ref", "-d", "refs/windlass/lost/one")
    assert refs.below(hub, "refs/windlass/lost/") == {"refs/windlass/lost/one-more": second}
    assert refs.find(hub, "refs/windlass/lost/one") == "" == refs.find(hub, "refs/windlass/lost")


def test_a_ref_that_is_no_plain_one_is_left_to_git(world: World) -> None:
    """A damaged file, an expression, a symbolic ref."""
    hub, refs = world.repository / ".git", HubRefs()
    (hub / "refs/heads/broken").write_text("")
    assert [refs.find(hub, name) for name in ("refs/heads/broken", "refs/heads/main^", "HEAD")] == [None] * 3


def test_the_users_settings_are_asked_for_again_when_a_file_of_theirs_changes(world: World) -> None:
    """Also a file that an include names and that did not exist."""
    more, user = world.home / "more", UserRepository(program(world), world.environment)
    with (world.home / ".gitconfig").open("a") as config:
        config.write("[include]\n\tpath = ~/more\n")

    async def name() -> str:
        return (await user.settings(str(world.repository))).name

    async def story() -> None:
        assert await name() == "Ada Lovelace"
        more.write_text("[user]\n\tname = Grace\n")
        assert await name() == "Grace"
        world.run("config", "user.name", "Here")
        assert await name() == "Here"

    asyncio.run(story())
