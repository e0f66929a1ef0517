"""Staging a change, and moving the user's main."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest
from gitkit import NOW, World

import patience
from windlass.core.errors import BadInput, Conflict, NotAllowed, NotFound, Unavailable, Unfit
from windlass.core.nouns.change import Candidate

DAEMON = """
import asyncio, os, sys
from pathlib import Path
from windlass.core import codec
from windlass.core.nouns.change import Candidate
from windlass.core.nouns.project import Project
from windlass.git import HubGit

git = HubGit(Path(sys.argv[1]), environment=os.environ)
project, candidate = (codec.revive(kind, codec.decode(said)) for kind, said in zip((Project, Candidate), sys.argv[2:]))
asyncio.run(git.land(project, candidate))
"""


async def staged(world: World, name: str = "coder", **files: str) -> Candidate:
    """A candidate that changes `a.txt`, or the files given."""
    changed = {each.replace("__", "/").replace("_", "."): text for each, text in files.items()}
    head = await world.change(changed or {"a.txt": "ONE\ntwo\nthree\n"}, name)
    return await world.git.stage(world.project, head, f"Land {name}")


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + patience.seconds(30)
    while not true():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.001)


def leftovers(world: World) -> str:
    return world.run("for-each-ref", "refs/windlass/")


class TestStage:
    def test_a_candidate_is_always_a_merge_commit_of_the_user(self, world: World) -> None:
        """One commit on main's first-parent line is one landed change, with the message given."""

        async def story() -> None:
            candidate = await staged(world)
            shown = world.run("--git-dir", str(world.hub), "log", "-1", "--format=%P|%an|%cn|%s", candidate.commit)
            head = candidate.commits[0]
            assert shown == f"{candidate.before} {head}|Ada Lovelace|Ada Lovelace|Land coder"
            assert candidate.files == ("a.txt",) and candidate.before == world.tip()
            assert candidate.tree == world.run("--git-dir", str(world.hub), "rev-parse", f"{candidate.commit}^{{tree}}")

        asyncio.run(story())

    def test_it_is_made_on_main_as_it_is_now(self, world: World) -> None:
        """What the user did meanwhile is in the tree."""

        async def story() -> None:
            head = await world.change({"a.txt": "ONE\ntwo\nthree\n"})
            newer = world.commit({"b.txt": "newer\n"})
            candidate = await world.git.stage(world.project, head, "Land")
            assert candidate.before == newer and candidate.files == ("a.txt",)
            content = world.run("--git-dir", str(world.hub), "cat-file", "blob", f"{candidate.tree}:b.txt")
            assert content == "newer"

        asyncio.run(story())

    def test_what_main_has_already_is_nothing_to_land(self, world: World) -> None:
        """The candidate is main itself, and landing it moves nothing."""

        async def story() -> None:
            await world.git.main(world.project)
            candidate = await world.git.stage(world.project, world.tip(), "Nothing")
            assert candidate.commits == () and candidate.commit == world.tip()
            landing = await world.git.land(world.project, candidate)
            assert landing.before == landing.after == world.tip()
            with pytest.raises(NotAllowed, match="nothing to take back"):
                await world.git.revert(world.project, landing, "work/undo", "Undo")

        asyncio.run(story())

    def test_a_conflict_is_told_with_files_and_both_sides(self, world: World) -> None:
        """Its author can mend it from the text alone."""

        async def story() -> None:
            head = await world.change({"a.txt": "one\nMINE\nthree\n", "b.txt": "mine\n", "dir/c.txt": "fine\n"})
            world.commit({"a.txt": "one\nTHEIRS\nthree\n"})
            (world.repository / "b.txt").unlink()
            world.commit({})
            with pytest.raises(Conflict) as caught:
                await world.git.stage(world.project, head, "Land")
            text = str(caught.value)
            assert text.startswith("2 files in conflict with main: a.txt, b.txt.")
            assert "one\n<<<<<<< main\nTHEIRS\n=======\nMINE\n>>>>>>> this change\nthree" in text
            assert "CONFLICT (modify/delete): b.txt deleted in" in text
            assert "dir/c.txt" not in text

        asyncio.run(story())

    def test_a_huge_conflict_is_cut(self, world: World) -> None:
        """A message has its limits."""

        async def story() -> None:
            head = await world.change({"big.txt": "mine\n" * 50_000})
            world.commit({"big.txt": "theirs\n" * 50_000})
            with pytest.raises(Conflict) as caught:
                await world.git.stage(world.project, head, "Land")
            assert len(str(caught.value)) < 9_000 and "… (cut)" in str(caught.value)

        asyncio.run(story())

    def test_a_history_that_has_nothing_to_do_with_main_is_unfit(self, world: World) -> None:
        """An agent may start anew, but not land that."""

        async def story() -> None:
            agent, path = await world.agent()
            world.run("checkout", "-q", "--orphan", "fresh", at=path)
            world.commit({"a.txt": "x"}, at=path)
            world.run("branch", "-f", "work/coder", at=path)
            tree = await world.git.look(world.project, agent, "r1")
            with pytest.raises(Unfit, match="no commit in common") as caught:
                await world.git.stage(world.project, tree.head, "Land")
            world.run(*caught.value.hint.partition("&& git ")[2].split(), "-X", "theirs", at=path)
            world.run("branch", "-f", "work/coder", at=path)
            tree = await world.git.look(world.project, agent, "r2")
            assert (await world.git.stage(world.project, tree.head, "Land")).files == ("a.txt",)

        asyncio.run(story())

    @pytest.mark.parametrize("head", ["--upload-pack=x", "main", "", "0" * 40])
    def test_what_is_no_commit_is_refused(self, world: World, head: str) -> None:
        """No name, no option."""
        with pytest.raises((BadInput, NotFound)):
            asyncio.run(world.git.stage(world.project, head, "Land"))


class TestCheckedOut:
    def test_a_clean_checkout_moves_along(self, world: World) -> None:
        """Ref, index and files agree, and landing again gives the same receipt."""

        async def story() -> None:
            candidate = await staged(world)
            landing = await world.git.land(world.project, candidate)
            assert (landing.before, landing.after, landing.tree) == (
                candidate.before,
                candidate.commit,
                candidate.tree,
            )
            assert landing.files == ("a.txt",) and landing.landed_at == NOW and landing.main == "main"
            assert world.tip() == candidate.commit and world.run("status", "--porcelain") == ""
            assert (world.repository / "a.txt").read_text().startswith("ONE")
            assert await world.git.land(world.project, candidate) == landing
            assert await world.git.landed(world.project, candidate.commits[0])
            assert leftovers(world) == ""

        asyncio.run(story())

    def test_local_changes_elsewhere_survive(self, world: World) -> None:
        """Changed, staged and untracked files that do not collide stay as they are."""

        async def story() -> None:
            candidate = await staged(world)
            world.write({"b.txt": "local\n", "dir/c.txt": "staged\n", "notes.txt": "untracked\n"})
            world.run("add", "dir/c.txt")
            await world.git.land(world.project, candidate)
            assert world.run("status", "--porcelain").splitlines() == ["M b.txt", "M  dir/c.txt", "?? notes.txt"]

        asyncio.run(story())

    def test_a_colliding_change_holds_it_with_gits_reason(self, world: World) -> None:
        """The file is named, nothing moves; once it is out of the way, it lands."""

        async def story() -> None:
            candidate = await staged(world)
            world.write({"a.txt": "local\n"})
            with pytest.raises(NotAllowed, match=r"would be overwritten by merge: a\.txt"):
                await world.git.land(world.project, candidate)
            assert world.tip() == candidate.before and (world.repository / "a.txt").read_text() == "local\n"
            assert leftovers(world) == ""
            world.run("checkout", "-q", "a.txt")
            await world.git.land(world.project, candidate)

        asyncio.run(story())

    @pytest.mark.parametrize("name", ["fresh.txt", "fresh.log"])
    def test_an_untracked_file_in_the_way_holds_it(self, world: World, name: str) -> None:
        """An ignored one too: nothing of the user's is overwritten."""

        async def story() -> None:
            agent, path = await world.agent()
            world.write({name: "theirs\n"}, path)
            world.run("add", "-f", name, at=path)
            world.run("commit", "-qm", "x", at=path)
            head = (await world.git.look(world.project, agent, "r1")).head
            candidate = await world.git.stage(world.project, head, "Land")
            world.write({name: "precious\n"})
            with pytest.raises(NotAllowed, match=name):
                await world.git.land(world.project, candidate)
            assert (world.repository / name).read_text() == "precious\n"
            assert world.tip() == candidate.before

        asyncio.run(story())

    def test_settings_of_the_user_about_merging_do_not_matter(self, world: World) -> None:
        """A landing is a fast-forward whatever the user prefers for their own merges."""

        async def story() -> None:
            world.run("config", "merge.ff", "false")
            world.run("config", "merge.autoStash", "true")
            world.run("config", "merge.verifySignatures", "true")
            world.run("config", "branch.main.mergeOptions", "--squash --no-commit")
            candidate = await staged(world)
            assert (await world.git.land(world.project, candidate)).after == world.tip()

        asyncio.run(story())

    def test_a_linked_worktree_with_main_moves_along(self, world: World) -> None:
        """Main is followed to where it is checked out; the primary worktree stays on its branch."""

        async def story() -> None:
            world.run("checkout", "-q", "-b", "side")
            linked = world.folder / "li nked"
            world.run("worktree", "add", "-q", str(linked), "main")
            candidate = await staged(world)
            await world.git.land(world.project, candidate)
            assert (linked / "a.txt").read_text().startswith("ONE")
            assert world.run("status", "--porcelain", at=linked) == ""
            assert world.run("status", "--porcelain", "--branch") == "## side"

        asyncio.run(story())

    def test_a_worktree_that_was_deleted_is_no_checkout(self, world: World) -> None:
        """What git would prune does not hold main."""

        async def story() -> None:
            world.run("checkout", "-q", "-b", "side")
            linked = world.folder / "linked"
            world.run("worktree", "add", "-q", str(linked), "main")
            candidate = await staged(world)
            linked.rename(world.folder / "elsewhere")
            assert (await world.git.land(world.project, candidate)).after == world.tip()

        asyncio.run(story())

    def test_main_in_two_checkouts_holds_it(self, world: World) -> None:
        """One of them would show the landing as undone."""

        async def story() -> None:
            world.run("worktree", "add", "-q", "-f", str(world.folder / "twin"), "main")
            with pytest.raises(NotAllowed, match="more than once"):
                await world.git.land(world.project, await staged(world))

        asyncio.run(story())

    def test_an_unfinished_merge_holds_it(self, world: World) -> None:
        """Git's reason is told."""

        async def story() -> None:
            candidate = await staged(world)
            world.run("checkout", "-q", "-b", "side")
            world.commit({"b.txt": "side\n"})
            world.run("checkout", "-q", "main")
            world.run("merge", "-q", "--no-commit", "--no-ff", "side")
            with pytest.raises(NotAllowed, match="not concluded your merge"):
                await world.git.land(world.project, candidate)

        asyncio.run(story())

    @pytest.mark.parametrize("doing", ["rebased", "bisected"])
    def test_a_main_that_is_being_worked_on_holds_it(self, world: World, doing: str) -> None:
        """Its checkout is detached meanwhile, but main is not free to move."""

        async def story() -> None:
            candidate = await staged(world)
            if doing == "bisected":
                world.run("bisect", "start")
                world.run("checkout", "-q", "--detach")
            else:
                world.run("-c", "sequence.editor=echo break >", "rebase", "-q", "-i", "--root", "main")
            with pytest.raises(NotAllowed, match=f"main is being {doing}"):
                await world.git.land(world.project, candidate)
            assert world.tip() == candidate.before

        asyncio.run(story())

    def test_a_stale_lock_is_named_and_nothing_is_damaged(self, world: World) -> None:
        """Trying again after its removal works."""

        async def story() -> None:
            candidate = await staged(world)
            lock = world.repository / ".git/index.lock"
            lock.write_text("")
            with pytest.raises(Unavailable, match=r"index\.lock exists") as caught:
                await world.git.land(world.project, candidate)
            assert "rm '" in str(caught.value)
            lock.unlink()
            await world.git.land(world.project, candidate)
            assert world.run("status", "--porcelain") == ""

        asyncio.run(story())

    def test_a_crash_between_the_files_and_the_ref_is_repaired_by_repeating(self, world: World) -> None:
        """Files and index are new, the ref is old: the same landing goes through."""

        async def story() -> None:
            candidate = await staged(world, a_txt="ONE\n", new_txt="new\n")
            world.run("--git-dir", str(world.hub), "push", "-q", str(world.repository), f"{candidate.commit}:refs/x/y")
            world.run("read-tree", "-m", "-u", candidate.before, candidate.commit)
            assert world.tip() == candidate.before
            await world.git.land(world.project, candidate)
            assert world.tip() == candidate.commit and world.run("status", "--porcelain") == ""

        asyncio.run(story())
