"""Objects of a hub that are damaged or gone: put back from where they still are; and other changes go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from gitkit import World

from windlass.core.errors import WindlassError
from windlass.git.paths import HubPaths
from windlass.git.program import GitProgram, no_step
from windlass.git.worktrees.repair import HubRepair

Harm = Callable[[Path], None]

AUTHOR = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def object_file(world: World, name: str) -> Path:
    """The file of an object of the hub."""
    commit = world.run("--git-dir", str(world.hub), "rev-parse", name)
    return world.hub / "objects" / commit[:2] / commit[2:]


def lose(file: Path) -> None:
    file.unlink()


def spoil(file: Path) -> None:
    _write_anew(file, b"garbage")


def empty(file: Path) -> None:
    """As after a power cut."""
    _write_anew(file, b"")


def _write_anew(file: Path, content: bytes) -> None:
    file.unlink()  # the user's repository has the same file by another name
    file.write_bytes(content)


harmed = pytest.mark.parametrize("harm", [lose, spoil], ids=lambda harm: harm.__name__)


async def a_repair(world: World) -> HubRepair:
    """A repair of the hub by itself."""
    await world.git.main(world.project)
    repair = HubRepair(GitProgram(world.environment, no_step), HubPaths(world.state))
    repair.watch(world.project)
    return repair


async def lands(world: World, files: dict[str, str], name: str) -> None:
    """A change goes all the way."""
    head = await world.change(files, name=name)
    await world.git.land(world.project, await world.git.stage(world.project, head, "Land"))
    assert all((world.repository / file).read_text() == text for file, text in files.items())


@harmed
def test_anothers_lost_commit_does_not_spoil_the_project(world: World, harm: Harm) -> None:
    """Its clone is gone, so that nobody has it: its refs are set aside and named, and others' changes land."""

    async def story() -> None:
        await world.change({"lost.txt": "lost\n"}, name="other")
        agent, _ = await world.agent("other")
        await world.git.remove_worktree(world.project, agent)
        world.run("branch", "-D", "work/other")
        world.run("gc", "-q", "--prune=now")
        commit = world.run("--git-dir", str(world.hub), "rev-parse", "work/other")
        harm(object_file(world, "work/other"))
        await lands(world, {"a.txt": "mine\n"}, "coder")
        state = await world.git.archive.examine(world.project)
        assert f"refs/heads/work/other at {commit}" in state.aside
        assert not state.lost
        assert "refs/heads/work/other" not in world.hub_refs()

    asyncio.run(story())


@harmed
def test_a_commit_that_the_clone_still_has_is_put_back(world: World, harm: Harm) -> None:
    """The agent goes on, and its change lands whole."""

    async def story() -> None:
        await world.change({"a.txt": "first\n"})
        world.run("branch", "-D", "work/coder")
        world.run("gc", "-q", "--prune=now")
        harm(object_file(world, "work/coder"))
        await lands(world, {"b.txt": "second\n"}, "coder")
        assert (world.repository / "a.txt").read_text() == "first\n"
        assert (await world.git.archive.examine(world.project)).aside == ()

    asyncio.run(story())


@pytest.mark.parametrize(("name", "harm"), [("main", lose), ("main^{tree}", empty), ("main:b.txt", spoil)])
def test_what_main_needs_is_fetched_from_the_users_repository(world: World, name: str, harm: Harm) -> None:
    """Agents begin, and changes land, as if nothing had been."""

    async def story() -> None:
        await world.git.main(world.project)
        harm(object_file(world, name))
        await lands(world, {"a.txt": "mine\n"}, "coder")
        world.run("--git-dir", str(world.hub), "fsck", "--strict")

    asyncio.run(story())


@harmed
def test_a_search_puts_back_what_nobody_has_stumbled_on(world: World, harm: Harm) -> None:
    """A file in an old snapshot is needed by nobody today."""

    async def story() -> None:
        await world.change({"a.txt": "old\n"})
        harm(object_file(world, "work/coder:a.txt"))
        state = await world.git.archive.examine(world.project)
        assert (state.lost, state.aside) == ((), ())
        world.run("--git-dir", str(world.hub), "fsck", "--strict")

    asyncio.run(story())


@harmed
def test_what_is_lost_is_named_with_the_ref_that_leads_to_it(world: World, harm: Harm) -> None:
    """Its ref stays: the rest of it can still be brought back."""

    async def story() -> None:
        agent, path = await world.agent()
        world.commit({"a.txt": "gone\n"}, at=path)
        await world.git.remove_worktree(world.project, agent)
        world.run("branch", "-D", "work/coder", ok=False)
        world.run("gc", "-q", "--prune=now")
        harm(file := object_file(world, "work/coder:a.txt"))
        blob = file.parent.name + file.name
        [lost] = (await world.git.archive.examine(world.project)).lost
        assert lost.startswith("refs/") and lost.endswith(f":a.txt: {blob} is missing")
        await lands(world, {"b.txt": "mine\n"}, "second")

    asyncio.run(story())


def test_a_damaged_pack_is_mended(world: World) -> None:
    """An object that a pack can't give any more is written anew, beside the pack."""

    async def story() -> None:
        world.commit({"large.txt": "".join(f"{number * 7919 % 104729}\n" for number in range(9000))})
        await world.git.main(world.project)
        world.run("--git-dir", str(world.hub), "repack", "-adq")
        [pack] = (world.hub / "objects/pack").glob("*.pack")
        middle = pack.stat().st_size // 2
        pack.chmod(0o600)
        with pack.open("r+b") as file:
            file.seek(middle)
            file.write(bytes(64))
        await lands(world, {"a.txt": "mine\n"}, "coder")

    asyncio.run(story())


def test_an_agent_cant_have_an_object_fetched_that_the_hub_never_had(world: World) -> None:
    """A branch at a commit of the user's private branch is a hole, as ever: that is no damage of the hub."""

    async def story() -> None:
        agent, path = await world.agent()
        world.run("checkout", "-q", "-b", "private")
        private = world.commit({"private.txt": "private\n"})
        world.run("checkout", "-q", "main")
        (path / ".git/refs/heads/work/coder").write_text(f"{private}\n")
        tree = await world.git.look(world.project, agent, "r1")
        assert tree.refused and tree.head != private
        assert world.run("--git-dir", str(world.hub), "cat-file", "-t", private, ok=False) != "commit"

    asyncio.run(story())


def test_an_object_is_not_fetched_because_a_complaint_names_a_pack(world: World) -> None:
    """Git complains with the agent's own file names: only the index of a pack tells what the hub has in it."""

    async def story() -> None:
        repair = await a_repair(world)
        world.run("checkout", "-q", "-b", "private")
        private = world.commit({"private.txt": "private\n"})
        world.run("checkout", "-q", "main")
        world.run("--git-dir", str(world.hub), "repack", "-adq")
        complaint = f'error: open("x{world.hub}/objects/pack/{private}"): Permission denied'
        assert not await repair.mend(str(world.hub), complaint)
        assert world.run("--git-dir", str(world.hub), "cat-file", "-t", private, ok=False) != "commit"

    asyncio.run(story())


@pytest.mark.parametrize("command", ["diff-files", "hash-object", "ls-files", "update-index"])
def test_a_command_that_reads_a_worktree_is_not_taken_at_its_word(world: World, command: str) -> None:
    """Its complaints are about the agent's files."""
    told: list[str] = []

    async def mend(hub: str, complaint: str) -> bool:
        del hub
        told.append(complaint)
        return False

    async def story() -> None:
        await world.git.main(world.project)
        program = GitProgram(world.environment, no_step, mend)
        for name in (command, "cat-file"):
            await program.ours(world.hub, name, "--no-such-option", ok=range(256))
        assert len(told) == 1 and "cat-file" in told[0]

    asyncio.run(story())


@harmed
def test_main_is_fetched_beside_a_ref_that_leads_nowhere(world: World, harm: Harm) -> None:
    """Nobody says that the user's repository did not send all."""

    async def story() -> None:
        await world.git.main(world.project)
        hub = ("--git-dir", str(world.hub))
        commit = world.run(*hub, "commit-tree", "main^{tree}", "-m", "Nobody has it", extra=AUTHOR)
        world.run(*hub, "update-ref", "refs/windlass/taken/x", commit)
        harm(object_file(world, "refs/windlass/taken/x"))
        newer = world.commit({"b.txt": "newer\n"})
        assert await world.git.main(world.project) == newer
        assert (await world.git.archive.examine(world.project)).aside == (f"refs/windlass/taken/x at {commit}",)

    asyncio.run(story())


def test_a_ref_that_leads_somewhere_again_is_not_set_aside(world: World) -> None:
    """Somebody moves it in the very moment: what it is at now is there, and stays."""

    async def story() -> None:
        before = await world.git.main(world.project)
        hub = ("--git-dir", str(world.hub))
        commit = world.run(*hub, "commit-tree", "main^{tree}", "-m", "Nobody has it", extra=AUTHOR)
        world.run(*hub, "update-ref", "refs/windlass/taken/x", commit)
        object_file(world, "refs/windlass/taken/x").unlink()
        world.act_at("git.update-ref.before", lambda: world.run(*hub, "update-ref", "refs/windlass/taken/x", before))
        world.commit({"b.txt": "newer\n"})
        with suppress(WindlassError):  # the next try finds nothing to mend
            await world.git.main(world.project)
        assert world.run(*hub, "rev-parse", "refs/windlass/taken/x") == before

    asyncio.run(story())
