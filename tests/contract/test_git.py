"""What every implementation of the `Git` port promises: the real one on real repositories, and the fake."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from git_stages import FIRST, STAGES, GitStage, an_agent

from windlass.core.archive import Whereabouts
from windlass.core.change import Candidate, Change, ChangeState, Landing
from windlass.core.errors import BadInput, Conflict, NotAllowed, NotFound, TakenBack
from windlass.core.ports import Git
from windlass.testing.repository import Edits

Story = Callable[[Git], Coroutine[Any, Any, None]]


@pytest.fixture(params=STAGES)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> GitStage:
    return STAGES[request.param](tmp_path)


def play(stage: GitStage, story: Story) -> None:
    asyncio.run(story(stage.port))


async def committed(stage: GitStage, edits: Edits, name: str = "coder") -> str:
    """An agent has committed; returns its branch's commit, which is in the hub."""
    path, _ = await stage.port.worktree(stage.project, an_agent(name))
    stage.agent_commits(path, edits)
    return (await stage.port.look(stage.project, an_agent(name), "r1")).head


async def staged(stage: GitStage, edits: Edits, name: str = "coder") -> Candidate:
    return await stage.port.stage(stage.project, await committed(stage, edits, name), f"Land {name}")


class TestRepository:
    def test_a_repository_is_known_by_its_folder_and_main_branch(self, stage: GitStage) -> None:
        """Its place and main are found; a branch that is not there is refused, and so is no repository."""

        async def story(port: Git) -> None:
            assert await port.inspect(stage.project.path) == (stage.project.path, "main")
            with pytest.raises(BadInput, match="nowhere"):
                await port.inspect(stage.project.path, main="nowhere")
            with pytest.raises(BadInput):
                await port.inspect(stage.folder("no-such-place"))

        play(stage, story)

    def test_main_is_where_the_user_has_it(self, stage: GitStage) -> None:
        """Also after the user has moved it, forward or back."""

        async def story(port: Git) -> None:
            first = stage.tip()
            assert await port.main(stage.project) == first
            newer = stage.commit({"a.txt": "newer\n"})
            assert await port.main(stage.project) == newer
            stage.reset(first)
            assert await port.main(stage.project) == first

        play(stage, story)

    def test_a_taken_branch_is_known(self, stage: GitStage) -> None:
        """The user's own, and one of the hub's."""

        async def story(port: Git) -> None:
            assert await port.branch_taken(stage.project, "main")
            assert not await port.branch_taken(stage.project, "work/coder")
            await port.worktree(stage.project, an_agent())
            assert await port.branch_taken(stage.project, "work/coder")

        play(stage, story)


class TestWorktree:
    def test_a_worktree_begins_at_main_and_stays_what_it_is(self, stage: GitStage) -> None:
        """It is made once; asking again changes nothing in it, and says where its branch left main."""

        async def story(port: Git) -> None:
            agent, first = an_agent(), stage.tip()
            assert not port.has_worktree(stage.project, agent)
            path, base = await port.worktree(stage.project, agent)
            assert (path, base) == (port.worktree_path(stage.project, agent), first)
            assert port.has_worktree(stage.project, agent)
            head = stage.agent_commits(path, {"a.txt": "mine\n"})
            stage.commit({"b.txt": "newer\n"})
            assert await port.worktree(stage.project, agent) == (path, first)
            assert (await port.look(stage.project, agent, "r1")).head == head

        play(stage, story)

    def test_two_agents_and_two_instances_have_their_own(self, stage: GitStage) -> None:
        """Neither sees what the other does."""

        async def story(port: Git) -> None:
            agents = [an_agent(), an_agent("tester"), an_agent("coder", "pr-7")]
            paths = [(await port.worktree(stage.project, each))[0] for each in agents]
            assert len(set(paths)) == 3
            stage.agent_commits(paths[0], {"a.txt": "mine\n"})
            trees = [await port.look(stage.project, each, "r1") for each in agents]
            assert [each.commits for each in trees] == [1, 0, 0]
            assert [each.branch for each in trees] == ["work/coder", "work/tester", "work/coder.pr-7"]

        play(stage, story)

    def test_a_look_sees_commits_changes_and_new_files(self, stage: GitStage) -> None:
        """What is committed is counted, what is not is named, and all of it is in the snapshot."""

        async def story(port: Git) -> None:
            path, _ = await port.worktree(stage.project, an_agent())
            head = stage.agent_commits(path, {"a.txt": "mine\n", "d.txt": "four\n"})
            clean = await port.look(stage.project, an_agent(), "r1")
            assert (clean.clean, clean.commits, clean.snapshot, clean.head) == (True, 1, head, head)
            stage.write(path, {"a.txt": "again\n", "b.txt": None, "new.txt": "new\n"})

            tree = await port.look(stage.project, an_agent(), "r2")

            assert (tree.changed, tree.untracked) == (("a.txt", "b.txt"), ("new.txt",))
            assert (tree.head, tree.commits, tree.holes) == (head, 1, ())
            await port.archive.to_folder(stage.project, tree.snapshot, stage.folder("seen"))
            seen = {**FIRST, "a.txt": "again\n", "d.txt": "four\n", "new.txt": "new\n"}
            del seen["b.txt"]
            assert stage.read_folder(stage.folder("seen")) == seen

        play(stage, story)

    def test_a_look_tells_which_branch_is_checked_out(self, stage: GitStage) -> None:
        """The agent's own branch is judged, wherever the agent has gone."""

        async def story(port: Git) -> None:
            path, _ = await port.worktree(stage.project, an_agent())
            head = stage.agent_commits(path, {"a.txt": "mine\n"})
            stage.agent_switches(path, "side")
            stage.agent_commits(path, {"a.txt": "elsewhere\n"})
            tree = await port.look(stage.project, an_agent(), "r1")
            assert (tree.branch, tree.head, tree.changed) == ("side", head, ("a.txt",))

        play(stage, story)

    def test_a_looked_at_branch_is_shown_to_the_user(self, stage: GitStage) -> None:
        """It appears beside the user's own, and follows."""

        async def story(port: Git) -> None:
            path, _ = await port.worktree(stage.project, an_agent())
            for text in ("one more\n", "two more\n"):
                head = stage.agent_commits(path, {"a.txt": text})
                await port.look(stage.project, an_agent(), "r1")
                assert stage.tip("work/coder") == head

        play(stage, story)

    def test_a_worktree_that_is_gone_is_not_looked_at(self, stage: GitStage) -> None:
        """Its branch is kept, and a new worktree goes on from there."""

        async def story(port: Git) -> None:
            head = await committed(stage, {"a.txt": "mine\n"})
            stage.lose(port.worktree_path(stage.project, an_agent()))
            assert not port.has_worktree(stage.project, an_agent())
            with pytest.raises(NotFound):
                await port.look(stage.project, an_agent(), "r2")
            await port.worktree(stage.project, an_agent())
            assert (await port.look(stage.project, an_agent(), "r2")).head == head

        play(stage, story)

    def test_the_difference_is_what_the_agent_has_changed(self, stage: GitStage) -> None:
        """Committed or not, and nothing of what main did meanwhile; also when only the branch is left."""

        async def story(port: Git) -> None:
            path, _ = await port.worktree(stage.project, an_agent())
            stage.agent_commits(path, {"a.txt": "mine\n"})
            stage.write(path, {"new.txt": "new\n"})
            stage.commit({"b.txt": "theirs\n"})
            diff = await port.diff(stage.project, an_agent())
            assert "+mine" in diff and "+new" in diff and "theirs" not in diff
            await port.look(stage.project, an_agent(), "r1")
            stage.lose(path)
            assert "+mine" in await port.diff(stage.project, an_agent())
            with pytest.raises(NotFound):
                await port.diff(stage.project, an_agent("nobody"))

        play(stage, story)

    def test_what_is_hidden_never_counts_as_work(self, stage: GitStage) -> None:
        """Files and folders that worktrees are given are neither changed nor untracked there."""

        async def story(port: Git) -> None:
            path, _ = await port.worktree(stage.project, an_agent())
            await port.hide(stage.project, an_agent(), [".env", "modules"])
            stage.write(path, {".env": "x\n", "modules/a/b": "y\n", "mine.txt": "z\n"})
            assert (await port.look(stage.project, an_agent(), "r1")).untracked == ("mine.txt",)

        play(stage, story)

    def test_the_files_and_lock_files_are_known(self, stage: GitStage) -> None:
        """Those of main, and those on the agent's branch by their content."""

        async def story(port: Git) -> None:
            assert await port.worktree(stage.project, an_agent())
            names, cut = await port.files(stage.project)
            assert (sorted(names), cut) == (sorted(FIRST), False)
            assert await port.locks(stage.project, an_agent()) == {}
            keys = []
            for text in ("one\n", "two\n"):
                await committed(stage, {"web/uv.lock": text, "uv.lock.md": text})
                keys.append(await port.locks(stage.project, an_agent()))
            assert [set(each) for each in keys] == [{"web/uv.lock"}] * 2
            assert keys[0] != keys[1]

        play(stage, story)

    def test_an_agents_git_reaches_the_hub_and_its_own_settings(self, stage: GitStage) -> None:
        """Each is named, and none of it is the user's repository."""
        readable, writable = stage.port.reach(stage.project, an_agent())
        assert readable and writable
        assert not any(each.startswith(stage.project.path) for each in (*readable, *writable))


class TestRenewal:
    def test_an_agent_that_stands_at_main_has_nothing_to_renew(self, stage: GitStage) -> None:
        """Nothing is saved, and nothing changes."""

        async def story(port: Git) -> None:
            await port.worktree(stage.project, an_agent())
            assert await port.renew(stage.project, an_agent()) == ""
            assert await port.archive.saved(stage.project) == []

        play(stage, story)

    def test_what_had_not_landed_is_saved_and_the_worktree_begins_at_main(self, stage: GitStage) -> None:
        """Commits and files are under the ref that is returned; what git ignores stays."""

        async def story(port: Git) -> None:
            path, _ = await port.worktree(stage.project, an_agent())
            stage.agent_commits(path, {"a.txt": "mine\n"})
            stage.agent_switches(path, "side")
            stage.write(path, {"new.txt": "new\n"})
            stage.litter(path, "noise")
            tip = stage.commit({"b.txt": "theirs\n"})
            ref = await port.renew(stage.project, an_agent())
            assert stage.seen(path) == FIRST | {"b.txt": "theirs\n"}
            tree = await port.look(stage.project, an_agent(), "r2")
            assert (tree.head, tree.branch, tree.clean, tree.commits) == (tip, "work/coder", True, 0)
            saved = {each.ref: each for each in await port.archive.saved(stage.project)}
            await port.archive.to_folder(stage.project, saved[ref].commit, stage.folder("saved"))
            assert stage.read_folder(stage.folder("saved")) == FIRST | {"a.txt": "mine\n", "new.txt": "new\n"}
            with pytest.raises(NotAllowed, match="noise"):
                await port.remove_worktree(stage.project, an_agent())

        play(stage, story)

    def test_what_has_landed_is_nothing_to_tell_of(self, stage: GitStage) -> None:
        """The worktree is at main again, and no ref is named."""

        async def story(port: Git) -> None:
            landing = await port.land(stage.project, await staged(stage, {"a.txt": "mine\n"}))
            assert await port.renew(stage.project, an_agent()) == ""
            assert (await port.look(stage.project, an_agent(), "r2")).head == landing.after

        play(stage, story)

    def test_a_branch_without_a_worktree_is_kept_as_well(self, stage: GitStage) -> None:
        """Its commits are saved, and the next worktree begins at main."""

        async def story(port: Git) -> None:
            head = await committed(stage, {"a.txt": "mine\n"})
            stage.lose(port.worktree_path(stage.project, an_agent()))
            ref = await port.renew(stage.project, an_agent())
            saved = {each.ref: each.commit for each in await port.archive.saved(stage.project)}
            assert saved[ref] == head
            path, base = await port.worktree(stage.project, an_agent())
            assert (stage.seen(path), base) == (FIRST, stage.tip())

        play(stage, story)

    def test_what_can_not_be_saved_keeps_its_worktree(self, stage: GitStage) -> None:
        """A nested repository is named, and nothing is touched."""

        async def story(port: Git) -> None:
            path, _ = await port.worktree(stage.project, an_agent())
            stage.agent_commits(path, {"a.txt": "mine\n"})
            stage.nest(path)
            with pytest.raises(NotAllowed, match="vendor"):
                await port.renew(stage.project, an_agent())
            assert (await port.look(stage.project, an_agent(), "r1")).commits == 1

        play(stage, story)


class TestLanding:
    def test_a_candidate_is_a_merge_onto_main(self, stage: GitStage) -> None:
        """Its tree has both sides; main has not moved yet."""

        async def story(port: Git) -> None:
            head = await committed(stage, {"a.txt": "mine\n"})
            tip = stage.commit({"b.txt": "theirs\n"})
            candidate = await port.stage(stage.project, head, "Land it")
            assert (candidate.before, candidate.commits, candidate.files) == (tip, (head,), ("a.txt",))
            assert stage.tip() == tip
            await port.archive.to_folder(stage.project, candidate.commit, stage.folder("tried"))
            assert stage.read_folder(stage.folder("tried")) == FIRST | {"a.txt": "mine\n", "b.txt": "theirs\n"}

        play(stage, story)

    def test_the_same_content_is_the_same_tree(self, stage: GitStage) -> None:
        """Two candidates of one change on one main are two commits at most, and one tree."""

        async def story(port: Git) -> None:
            head = await committed(stage, {"a.txt": "mine\n"})
            first, second = [await port.stage(stage.project, head, "Land it") for _ in range(2)]
            assert first.tree == second.tree

        play(stage, story)

    def test_what_both_sides_changed_is_a_conflict(self, stage: GitStage) -> None:
        """It names the file, and has both sides."""

        async def story(port: Git) -> None:
            head = await committed(stage, {"a.txt": "mine\n"})
            stage.commit({"a.txt": "theirs\n"})
            with pytest.raises(Conflict) as caught:
                await port.stage(stage.project, head, "Land it")
            assert all(each in str(caught.value) for each in ("a.txt", "mine", "theirs"))

        play(stage, story)

    def test_what_main_has_already_leaves_nothing_to_land(self, stage: GitStage) -> None:
        """The candidate has no commits."""

        async def story(port: Git) -> None:
            candidate = await port.stage(stage.project, await port.main(stage.project), "Land it")
            assert (candidate.commits, candidate.files, candidate.commit) == ((), (), stage.tip())

        play(stage, story)

    def test_landing_moves_main_and_the_files_of_its_checkout(self, stage: GitStage) -> None:
        """The receipt says from where to where; landing it again changes nothing, and gives the same receipt."""

        async def story(port: Git) -> None:
            before = stage.tip()
            candidate = await staged(stage, {"a.txt": "mine\n", "b.txt": None})
            landing = await port.land(stage.project, candidate)
            assert (landing.before, landing.after, landing.tree) == (before, stage.tip(), candidate.tree)
            assert landing.files == ("a.txt", "b.txt")
            expected = FIRST | {"a.txt": "mine\n"}
            del expected["b.txt"]
            assert stage.files() == expected
            assert await port.land(stage.project, candidate) == landing
            assert await port.landed(stage.project, candidate.commit)

        play(stage, story)

    def test_what_a_person_took_out_of_main_does_not_come_back(self, stage: GitStage) -> None:
        """A branch that stands on a commit that main has lost is refused, and names it."""

        async def story(port: Git) -> None:
            before = stage.tip()
            await port.main(stage.project)
            lost = stage.commit({"secret.txt": "oops\n"})
            head = await committed(stage, {"a.txt": "mine\n"})
            stage.reset(before)
            with pytest.raises(TakenBack, match=lost):
                await port.stage(stage.project, head, "Land it")

        play(stage, story)

    def test_main_that_has_moved_is_not_moved(self, stage: GitStage) -> None:
        """Compare and swap: what was tested on an older main does not land."""

        async def story(port: Git) -> None:
            candidate = await staged(stage, {"a.txt": "mine\n"})
            newer = stage.commit({"b.txt": "theirs\n"})
            with pytest.raises(Conflict):
                await port.land(stage.project, candidate)
            assert stage.tip() == newer
            assert not await port.landed(stage.project, candidate.commit)

        play(stage, story)

    def test_another_tree_than_the_tested_one_does_not_land(self, stage: GitStage) -> None:
        """A candidate that lies about its tree, or is no merge of main, is refused."""

        async def story(port: Git) -> None:
            tip = stage.tip()
            candidate = await staged(stage, {"a.txt": "mine\n"})
            other = await staged(stage, {"b.txt": "other\n"}, "tester")
            for lie in (replace(candidate, tree=other.tree), replace(candidate, commit=candidate.commits[0])):
                with pytest.raises(Conflict):
                    await port.land(stage.project, lie)
            with pytest.raises(NotFound):
                await port.land(stage.project, replace(candidate, commit="0" * 40))
            assert stage.tip() == tip

        play(stage, story)

    def test_local_changes_in_the_checkout_are_never_overwritten(self, stage: GitStage) -> None:
        """A file that both would write holds it; another one does not."""

        async def story(port: Git) -> None:
            candidate = await staged(stage, {"a.txt": "mine\n", "new.txt": "new\n"})
            tip = stage.tip()
            for way in ({"a.txt": "my own\n"}, {"new.txt": "my own\n"}):
                stage.edit(way)
                with pytest.raises(NotAllowed):
                    await port.land(stage.project, candidate)
                assert stage.tip() == tip
                assert stage.files().items() >= way.items()
                stage.edit({"a.txt": "one\n"} if "a.txt" in way else {"new.txt": None})
            stage.edit({"b.txt": "my own\n"})
            await port.land(stage.project, candidate)
            assert stage.files()["b.txt"] == "my own\n"

        play(stage, story)

    def test_main_moves_also_where_it_is_not_checked_out(self, stage: GitStage) -> None:
        """The checkout of another branch stays as it is."""

        async def story(port: Git) -> None:
            candidate = await staged(stage, {"a.txt": "mine\n"})
            stage.leave_main()
            stage.edit({"a.txt": "my own\n"})
            landing = await port.land(stage.project, candidate)
            assert stage.tip() == landing.after
            assert stage.files()["a.txt"] == "my own\n"

        play(stage, story)

    def test_taking_a_landing_back_restores_what_was_there(self, stage: GitStage) -> None:
        """Only that: what landed later stays."""

        async def story(port: Git) -> None:
            first = await port.land(stage.project, await staged(stage, {"a.txt": "mine\n"}))
            await port.land(stage.project, await staged(stage, {"b.txt": "other\n"}, "tester"))
            head = await port.revert(stage.project, first, "undo/c1", "Undo it")
            assert await port.branch_taken(stage.project, "undo/c1")
            await port.land(stage.project, await port.stage(stage.project, head, "Undo"))
            assert stage.files() == FIRST | {"b.txt": "other\n"}

        play(stage, story)

    def test_the_difference_of_a_landing_is_known(self, stage: GitStage) -> None:
        """Between where main was and where it went."""

        async def story(port: Git) -> None:
            landing = await port.land(stage.project, await staged(stage, {"a.txt": "mine\n"}))
            diff = await port.diff_between(stage.project, landing.before, landing.after)
            assert "-one" in diff and "+mine" in diff

        play(stage, story)


class TestArchive:
    def test_a_removed_worktree_can_be_brought_back(self, stage: GitStage) -> None:
        """Its files, committed or not, are under the ref that is returned."""

        async def story(port: Git) -> None:
            path, _ = await port.worktree(stage.project, an_agent())
            stage.agent_commits(path, {"a.txt": "mine\n"})
            stage.write(path, {"new.txt": "new\n"})
            ref = await port.remove_worktree(stage.project, an_agent())
            assert not port.has_worktree(stage.project, an_agent())
            [saved] = await port.archive.saved(stage.project, an_agent())
            assert (saved.ref, saved.id, saved.removed, saved.landed, saved.sound) == (
                ref,
                "coder/1",
                True,
                False,
                True,
            )
            contents = await port.archive.contents(stage.project, saved.commit)
            assert (contents.files, contents.commits, contents.new) == (("a.txt", "new.txt"), 1, True)
            assert b"+mine" in await port.archive.difference(stage.project, saved.commit, exact=True)
            await port.archive.to_branch(stage.project, saved.commit, "rescue/mine")
            assert stage.tip("rescue/mine") == saved.commit
            with pytest.raises(Conflict):
                await port.archive.to_branch(stage.project, saved.commit, "rescue/mine")
            assert await port.remove_worktree(stage.project, an_agent()) == ref, "as after a crash"
            with pytest.raises(NotFound):
                await port.remove_worktree(stage.project, an_agent("nobody"))

        play(stage, story)

    def test_what_git_ignores_is_kept_unless_it_was_given(self, stage: GitStage) -> None:
        """A worktree goes with what it was furnished with; what its agent left there holds it."""

        async def story(port: Git) -> None:
            path, _ = await port.worktree(stage.project, an_agent())
            stage.litter(path, "given")
            await port.furnish(stage.project, an_agent())
            stage.litter(path, "own")
            with pytest.raises(NotAllowed) as caught:
                await port.remove_worktree(stage.project, an_agent())
            assert "own.log" in str(caught.value) and "given.log" not in str(caught.value)

        play(stage, story)

    def test_what_can_not_be_saved_is_not_removed(self, stage: GitStage) -> None:
        """A nested repository is named, and the worktree stays."""

        async def story(port: Git) -> None:
            path, _ = await port.worktree(stage.project, an_agent())
            stage.nest(path)
            assert (await port.look(stage.project, an_agent(), "r1")).holes != ()
            with pytest.raises(NotAllowed, match="vendor"):
                await port.remove_worktree(stage.project, an_agent())
            assert port.has_worktree(stage.project, an_agent())

        play(stage, story)

    def test_saved_work_knows_whose_it_is_and_whether_it_has_landed(self, stage: GitStage) -> None:
        """By agent and run; what main has counts as landed."""

        async def story(port: Git) -> None:
            assert await port.archive.saved(stage.project) == []
            await port.land(stage.project, await staged(stage, {"a.txt": "mine\n"}))
            await committed(stage, {"b.txt": "other\n"}, "tester")
            every = await port.archive.saved(stage.project)
            assert {each.id: each.landed for each in every} == {"coder/r1": True, "tester/r1": False}
            [one] = await port.archive.saved(stage.project, an_agent("tester"))
            assert one.id == "tester/r1"

        play(stage, story)

    def test_a_landing_is_proven_anew(self, stage: GitStage) -> None:
        """Tree, parents and merge are asked of git; and where the commit is, also after a person rewrote main."""

        async def story(port: Git) -> None:
            head = await committed(stage, {"a.txt": "mine\n"})
            candidate = await port.stage(stage.project, head, "Land it")
            landing = await port.land(stage.project, candidate)
            change = a_change(head, landing)
            [proof] = await port.archive.proofs(stage.project, [change])
            assert (proof.tree, proof.merged, proof.parents) == (
                candidate.tree,
                candidate.tree,
                (landing.before, head),
            )
            assert proof.whereabouts is Whereabouts.THERE
            stage.reset(landing.before)
            [proof, never] = await port.archive.proofs(
                stage.project, [change, a_change(head, replace(landing, after="0" * 40, landed_at=9e12))]
            )
            assert proof.whereabouts is Whereabouts.REWRITTEN
            assert (never.tree, never.whereabouts) == ("", Whereabouts.NEVER)

        play(stage, story)


def a_change(head: str, landing: Landing) -> Change:
    return Change(
        id="c1", project="p-1", branch="work/coder", head=head, title="It", state=ChangeState.LANDED, landing=landing
    )
