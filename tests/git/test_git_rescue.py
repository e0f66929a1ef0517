"""What the hub keeps under hidden refs: listed, shown exactly, brought back, and never over anything."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from gitkit import World, an_agent

from windlass.core.errors import BadInput, Conflict, NotFound, Unavailable
from windlass.core.ports.archive import Archive, Saved
from windlass.git.worktrees.saved_work import LONGEST_DIFF

LATIN = b"caf\xe9\r\n"


def archive(world: World) -> Archive:
    return world.git.archive


async def removed(world: World, name: str = "coder") -> Saved:
    """An agent's worktree with a commit, a change, a new file and a stash, removed; what is saved of it."""
    agent, path = await world.agent(name)
    extra = world.git.environment(world.project, agent)
    world.write({"b.txt": "stashed\n"}, path)
    world.run("stash", "-q", at=path, extra=extra)
    world.commit({"new.txt": "new\n"}, at=path)
    world.write({"a.txt": "one\nTWO\nthree\n"}, path)
    (path / "left.bin").write_bytes(LATIN)
    (path / "run.sh").write_text("#!/bin/sh\n")
    (path / "run.sh").chmod(0o755)
    (path / "link").symlink_to("a.txt")
    await world.git.remove_worktree(world.project, agent)
    [saved] = await archive(world).saved(world.project, agent)
    return saved


class TestListing:
    def test_a_question_makes_no_hub(self, world: World) -> None:
        """Nothing is saved where nothing was begun, and asking leaves no trace."""
        assert asyncio.run(archive(world).saved(world.project)) == []
        assert not world.hub.exists()

    def test_a_removed_worktree_is_saved_with_all_that_its_clone_kept(self, world: World) -> None:
        """Its files are under one ref; a stash, which they do not hold, is named beside it; the branch is not."""

        async def story() -> None:
            saved = await removed(world)
            assert (saved.id, saved.removed, saved.landed, saved.sound) == ("coder/1", True, False, True)
            assert saved.ref == "refs/windlass/rescue/coder/1/tree"
            assert [each.rpartition("/")[2].partition("-")[2] for each in saved.also] == ["refs-stash"]
            contents = await archive(world).contents(world.project, saved.commit)
            assert contents.files == ("a.txt", "left.bin", "link", "new.txt", "run.sh")
            assert (contents.commits, contents.new, contents.base) == (1, True, world.tip())

        asyncio.run(story())

    def test_untracked_files_of_a_stash_are_part_of_it(self, world: World, tmp_path: Path) -> None:
        """Git keeps them apart, where no diff shows them: they are shown and brought back all the same."""

        async def story() -> None:
            agent, path = await world.agent()
            extra = world.git.environment(world.project, agent)
            for name in ("idea/new.txt", "idea/later.txt"):
                world.write({name: "stashed\n"}, path)
                world.run("stash", "-q", "--include-untracked", at=path, extra=extra)
            await world.git.remove_worktree(world.project, agent)
            [saved] = await archive(world).saved(world.project, agent)
            [later, stash] = saved.also.values()
            assert (await archive(world).contents(world.project, later)).files == ("idea/later.txt",)
            contents = await archive(world).contents(world.project, stash)
            assert (contents.files, contents.new, saved.landed) == (("idea/new.txt",), True, False)
            assert b"+stashed" in await archive(world).difference(world.project, stash, exact=False)
            await archive(world).to_folder(world.project, stash, str(tmp_path / "back"))
            assert (tmp_path / "back/idea/new.txt").read_text() == "stashed\n"

        asyncio.run(story())

    def test_what_main_has_is_known(self, world: World) -> None:
        """By history, and by content where it landed in another commit."""

        async def story() -> None:
            agent, path = await world.agent()
            world.write({"a.txt": "mine\n"}, path)
            await world.git.look(world.project, agent, "r0")
            head = await world.change({"a.txt": "mine\n"})
            await world.git.look(world.project, agent, "r2")
            await world.git.land(world.project, await world.git.stage(world.project, head, "Land"))
            saved = {each.label: each for each in await archive(world).saved(world.project)}
            assert {label: each.landed for label, each in saved.items()} == {"r0": False, "r1": True, "r2": True}
            contents = await archive(world).contents(world.project, saved["r0"].commit)
            assert (contents.files, contents.new) == (("a.txt",), False)

        asyncio.run(story())

    def test_each_agent_has_its_own(self, world: World) -> None:
        """An instance is told from its twin, and from a name that begins alike."""

        async def story() -> None:
            for agent in (an_agent("coder"), an_agent("coder", "pr-7"), an_agent("coder-2")):
                await world.git.worktree(world.project, agent)
                await world.git.look(world.project, agent, "r1")
            every = await archive(world).saved(world.project)
            assert sorted(each.id for each in every) == ["coder-2/r1", "coder/r1", "coder@pr-7/r1"]
            [one] = await archive(world).saved(world.project, an_agent("coder", "pr-7"))
            assert one.id == "coder@pr-7/r1"

        asyncio.run(story())

    def test_a_ref_whose_commit_is_missing_is_listed_as_unsound(self, world: World) -> None:
        """It is there to be seen, not to be believed; the others are not hidden by it."""

        async def story() -> None:
            saved = await removed(world)
            (world.hub / "refs/windlass/snapshots/coder").mkdir(parents=True, exist_ok=True)
            (world.hub / "refs/windlass/snapshots/coder/r9").write_text("1" * 40 + "\n")
            found = {each.id: each.sound for each in await archive(world).saved(world.project)}
            assert found == {saved.id: True, "coder/r9": False}

        asyncio.run(story())


class TestShowing:
    def test_the_exact_difference_can_be_applied(self, world: World) -> None:
        """Applied where the branch left main, it gives the saved worktree byte by byte, modes and links too."""

        async def story() -> None:
            saved = await removed(world)
            diff = await archive(world).difference(world.project, saved.commit, exact=True)
            patch = world.folder / "patch"
            patch.write_bytes(diff)
            world.run("apply", "--whitespace=nowarn", str(patch))
            world.run("add", "-A")
            tree = world.run("--git-dir", str(world.hub), "rev-parse", f"{saved.commit}^{{tree}}")
            assert world.run("write-tree") == tree
            assert (world.repository / "left.bin").read_bytes() == LATIN

        asyncio.run(story())

    def test_a_very_long_one_is_cut_for_reading_and_refused_for_applying(self, world: World) -> None:
        """Half a patch is worse than none; the way out is named."""

        async def story() -> None:
            agent, path = await world.agent()
            world.write({"long.txt": "0123456789\n" * (LONGEST_DIFF // 10)}, path)
            await world.git.look(world.project, agent, "r1")
            [saved] = await archive(world).saved(world.project)
            read = await archive(world).difference(world.project, saved.commit, exact=False)
            assert read.endswith("… (cut)\n".encode())
            with pytest.raises(Unavailable, match="longer than 10 MB") as refusal:
                await archive(world).difference(world.project, saved.commit, exact=True)
            assert "--to" in refusal.value.hint

        asyncio.run(story())


class TestRestoring:
    def test_as_a_branch(self, world: World) -> None:
        """The user has a branch with the agent's commit and the rest on top; nothing else of theirs has changed."""

        async def story() -> None:
            saved = await removed(world)
            before = world.run("for-each-ref"), world.run("status", "--porcelain")
            await archive(world).to_branch(world.project, saved.commit, "rescue/coder-1")
            assert world.tip("rescue/coder-1") == saved.commit
            assert world.run("log", "--format=%s", "main..rescue/coder-1") == "The worktree as it was\nWork"
            world.run("branch", "-D", "rescue/coder-1")
            assert (world.run("for-each-ref"), world.run("status", "--porcelain")) == before

        asyncio.run(story())

    def test_never_over_a_branch_that_is_made_meanwhile(self, world: World) -> None:
        """The person makes one of that name in the very moment: theirs stays where it is."""

        async def story() -> None:
            saved = await removed(world)
            main = world.tip()
            world.act_at("git.push.before", lambda: world.run("branch", "mine"))
            with pytest.raises(Conflict, match="could not be made"):
                await archive(world).to_branch(world.project, saved.commit, "mine")
            assert world.tip("mine") == main

        asyncio.run(story())

    def test_never_over_a_branch_that_is_there(self, world: World) -> None:
        """Refused with the way out, whatever the branch is at; also where a name stands in the way of the folder."""

        async def story() -> None:
            saved = await removed(world)
            main = world.tip()
            for name in ("mine", "main", "rescue"):
                world.run("branch", "-f", name, ok=False)
                asked = name if name != "rescue" else "rescue/coder-1"
                with pytest.raises(Conflict) as refusal:
                    await archive(world).to_branch(world.project, saved.commit, asked)
                assert "--branch" in refusal.value.hint
                assert world.tip(f"refs/heads/{name}") == main

        asyncio.run(story())

    @pytest.mark.parametrize("name", ["--upload-pack=x", "a..b", "@", "@{-1}", "a b", "x.lock", "HEAD", "a\nb", "/x"])
    def test_a_bad_name_is_refused(self, world: World, name: str) -> None:
        """Nothing is made of a name that is none."""

        async def story() -> None:
            saved = await removed(world)
            before = world.run("for-each-ref")
            with pytest.raises(BadInput, match="is not the name of a branch"):
                await archive(world).to_branch(world.project, saved.commit, name)
            assert world.run("for-each-ref") == before

        asyncio.run(story())

    def test_as_files_in_a_new_folder(self, world: World) -> None:
        """Every file is as it was, and there is no repository in it."""

        async def story() -> None:
            saved = await removed(world)
            folder = world.folder / "bröt: 'back"
            await archive(world).to_folder(world.project, saved.commit, str(folder))
            names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())
            expected = [".gitignore", "a.txt", "b.txt", "dir/c.txt", "left.bin", "link", "new.txt", "run.sh"]
            assert names == expected
            assert (folder / "left.bin").read_bytes() == LATIN
            assert os.access(folder / "run.sh", os.X_OK)
            assert (folder / "link").readlink() == Path("a.txt")
            assert not [path for path in world.folder.iterdir() if path.name.startswith(".new-")]

        asyncio.run(story())

    def test_never_over_a_folder_or_a_link_that_is_there(self, world: World) -> None:
        """An empty folder, a file or a link that leads nowhere is someone's; a folder above must be there."""

        async def story() -> None:
            saved = await removed(world)
            (world.folder / "empty").mkdir()
            (world.folder / "file").write_text("mine")
            (world.folder / "dangling").symlink_to("nowhere")
            for name in ("empty", "file", "dangling"):
                with pytest.raises(Conflict, match="exists already"):
                    await archive(world).to_folder(world.project, saved.commit, str(world.folder / name))
            with pytest.raises(NotFound, match="There is no folder"):
                await archive(world).to_folder(world.project, saved.commit, str(world.folder / "not/there"))
            for name in ("n" * 300, f"{'n' * 300}/x"):
                with pytest.raises((BadInput, Unavailable), match="too long"):
                    await archive(world).to_folder(world.project, saved.commit, str(world.folder / name))
            assert list((world.folder / "empty").iterdir()) == []
            assert not (world.folder / "nowhere").exists()

        asyncio.run(story())
