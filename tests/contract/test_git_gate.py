"""What every implementation of the `Git` port promises about landing, and about what is kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from git_stages import FIRST, STAGES, GitStage, an_agent, committed, play, staged

from windlass.core.errors import BadInput, Conflict, NotAllowed, NotFound, TakenBack, Unfit
from windlass.core.nouns.change import Change, ChangeState, Landing, LandingShape
from windlass.core.ports.archive import HubState, Whereabouts
from windlass.core.ports.git import Git


@pytest.fixture(params=STAGES)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> GitStage:
    return STAGES[request.param](tmp_path)


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

    @pytest.mark.parametrize(
        ("name", "text"), [(".gitmodules", ""), ("art/.gitattributes", "*.txt text\n*.png filter=lfs -text\n")]
    )
    def test_what_no_project_may_have_does_not_land(self, stage: GitStage, name: str, text: str) -> None:
        """It is named; a repository with it would be refused from then on. To take it out is fine."""

        async def story(port: Git) -> None:
            head = await committed(stage, {name: text, "a.txt": "mine\n"})
            with pytest.raises(Unfit, match=name):
                await port.stage(stage.project, head, "Land it")
            head = await committed(stage, {name: None})
            assert (await port.stage(stage.project, head, "Land it")).files == ("a.txt",)

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

    def test_a_stack_lands_at_once_and_each_has_its_receipt(self, stage: GitStage) -> None:
        """The second stands on the first: main moves once, through both; neither is moved again."""

        async def story(port: Git) -> None:
            before = stage.tip()
            first = await staged(stage, {"a.txt": "mine\n"})
            head = await committed(stage, {"b.txt": "other\n"}, "tester")
            second = await port.stage(stage.project, head, "Land it too", onto=first.commit)
            assert (second.before, second.files, second.commits) == (first.commit, ("b.txt",), (head,))
            landing = await port.land(stage.project, first, second)
            assert (landing.before, landing.after, stage.tip()) == (first.commit, second.commit, second.commit)
            lower = await port.land(stage.project, first)
            assert (lower.before, lower.after, lower.files) == (before, first.commit, ("a.txt",))
            assert (stage.tip(), stage.files()) == (second.commit, FIRST | {"a.txt": "mine\n", "b.txt": "other\n"})

        play(stage, story)

    def test_a_stack_with_a_lie_in_the_middle_does_not_land(self, stage: GitStage) -> None:
        """Each of them is proven, not only the last; one alone does not land without what is below it."""

        async def story(port: Git) -> None:
            tip = stage.tip()
            first = await staged(stage, {"a.txt": "mine\n"})
            head = await committed(stage, {"b.txt": "other\n"}, "tester")
            second = await port.stage(stage.project, head, "Land it too", onto=first.commit)
            for lie in ((replace(first, tree=second.tree), second), (second,), (second, first)):
                with pytest.raises(Conflict):
                    await port.land(stage.project, *lie)
            assert stage.tip() == tip

        play(stage, story)

    def test_a_conflict_with_what_is_below_is_told(self, stage: GitStage) -> None:
        """Both are fine on main, and not on each other."""

        async def story(port: Git) -> None:
            first = await staged(stage, {"a.txt": "mine\n"})
            head = await committed(stage, {"a.txt": "other\n"}, "tester")
            assert (await port.stage(stage.project, head, "Land it")).files == ("a.txt",)
            with pytest.raises(Conflict, match=r"a\.txt"):
                await port.stage(stage.project, head, "Land it", onto=first.commit)

        play(stage, story)

    def test_one_commit_is_a_shape_too(self, stage: GitStage) -> None:
        """Squashed: one commit on main with all of the change; one of another shape is not believed to be it."""

        async def story(port: Git) -> None:
            tip = stage.tip()
            head = await committed(stage, {"a.txt": "mine\n"})
            squashed = await port.stage(stage.project, head, "Land it", shape=LandingShape.SQUASH)
            with pytest.raises(Conflict):
                await port.land(stage.project, replace(squashed, shape=LandingShape.MERGE))
            landing = await port.land(stage.project, squashed)
            assert (landing.before, landing.after) == (tip, stage.tip())
            assert not await port.landed(stage.project, head)

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

    def test_a_branch_of_the_users_is_taken_as_it_is(self, stage: GitStage) -> None:
        """Its commit lands like an agent's; what the branch gets later is not part of it."""

        async def story(port: Git) -> None:
            stage.leave_main()
            wanted = stage.commit({"b.txt": "by hand\n"})
            head, subject = await port.take(stage.project, "elsewhere")
            stage.commit({"b.txt": "later\n"})
            assert head == wanted and subject
            landing = await port.land(stage.project, await port.stage(stage.project, head, "Land it"))
            assert landing.files == ("b.txt",)
            assert "+by hand" in await port.diff_between(stage.project, landing.before, landing.after)

        play(stage, story)

    @pytest.mark.parametrize(("branch", "kind"), [("main", BadInput), ("nowhere", NotFound), ("elsewhere~1", NotFound)])
    def test_only_another_branch_can_be_taken(self, stage: GitStage, branch: str, kind: type[Exception]) -> None:
        """Main itself, a name that nobody has, and what only leads to a commit are refused."""

        async def story(port: Git) -> None:
            stage.leave_main()
            stage.commit({"b.txt": "by hand\n"})
            with pytest.raises(kind, match=branch):
                await port.take(stage.project, branch)

        play(stage, story)

    def test_the_difference_of_a_commit_is_what_it_did_since_it_left_main(self, stage: GitStage) -> None:
        """What main got meanwhile is no part of it."""

        async def story(port: Git) -> None:
            head = await committed(stage, {"a.txt": "mine\n"})
            stage.commit({"b.txt": "theirs\n"})
            diff = await port.diff_of(stage.project, head)
            assert "+mine" in diff and "theirs" not in diff

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
            assert not await port.has_worktree(stage.project, an_agent())
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
            await port.record_extra_files(stage.project, an_agent())
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
            assert await port.has_worktree(stage.project, an_agent())

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
            assert await port.archive.examine(stage.project) == HubState()

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
