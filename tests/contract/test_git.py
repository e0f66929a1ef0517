"""What every implementation of the `Git` port promises: the real one on real repositories, and the fake."""

from __future__ import annotations

from dataclasses import replace
from inspect import iscoroutinefunction
from pathlib import Path

import pytest
from git_stages import FIRST, STAGES, GitStage, an_agent, committed, play, staged

from windlass.core.errors import BadInput, NotAllowed, NotFound
from windlass.core.nouns.agent import Permissions
from windlass.core.ports.git import Git, LandingGit, UserGit, WorkGit, WorktreeGit


@pytest.fixture(params=STAGES)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> GitStage:
    return STAGES[request.param](tmp_path)


class TestRepository:
    def test_a_repository_is_known_by_its_folder_and_main_branch(self, stage: GitStage) -> None:
        """Its place and main are found; a branch that is not there is refused, and so is no repository."""

        async def story(port: Git) -> None:
            assert await port.locate(stage.project.path) == stage.project.path
            assert await port.inspect(stage.project.path) == "main"
            with pytest.raises(BadInput, match="nowhere"):
                await port.inspect(stage.project.path, main="nowhere")
            with pytest.raises(BadInput):
                await port.locate(stage.folder("no-such-place"))

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
            assert not await port.has_worktree(stage.project, agent)
            path, base = await port.worktree(stage.project, agent)
            assert (path, base) == (port.worktree_path(stage.project, agent), first)
            assert await port.has_worktree(stage.project, agent)
            head = stage.agent_commits(path, {"a.txt": "mine\n"})
            stage.commit({"b.txt": "newer\n"})
            assert await port.worktree(stage.project, agent) == (path, first)
            assert (await port.look(stage.project, agent, "r1")).head == head

        play(stage, story)

    def test_two_agents_and_two_instances_have_their_own(self, stage: GitStage) -> None:
        """Neither sees what the other does."""

        async def story(port: Git) -> None:
            agents = [an_agent(), an_agent("tester"), an_agent("coder", "pr-7")]
            paths = [(await port.worktree(stage.project, agent))[0] for agent in agents]
            assert len(set(paths)) == 3
            stage.agent_commits(paths[0], {"a.txt": "mine\n"})
            trees = [await port.look(stage.project, agent, "r1") for agent in agents]
            assert [tree.commits for tree in trees] == [1, 0, 0]
            assert [tree.branch for tree in trees] == ["work/coder", "work/tester", "work/coder.pr-7"]

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

    def test_a_commit_that_cannot_be_taken_in_is_refused_by_name(self, stage: GitStage) -> None:
        """The head stays at the commit before it, and the reason names the branch and the commit."""

        async def story(port: Git) -> None:
            known = await committed(stage, {"a.txt": "mine\n"})
            path, _ = await port.worktree(stage.project, an_agent())
            lost = stage.agent_commits(path, {"a.txt": "more\n", "new.txt": "new\n"})
            stage.damage(path)
            tree = await port.look(stage.project, an_agent(), "r2")
            assert (tree.head, tree.commits, tree.changed, tree.untracked) == (known, 1, ("a.txt",), ("new.txt",))
            assert "work/coder" in tree.refused and lost[:12] in tree.refused
            assert tree.refused in tree.holes

        play(stage, story)

    def test_what_no_snapshot_holds_is_left_over(self, stage: GitStage) -> None:
        """A nested repository is not committed either: the worktree is not clean."""

        async def story(port: Git) -> None:
            path, _ = await port.worktree(stage.project, an_agent())
            stage.nest(path)
            tree = await port.look(stage.project, an_agent(), "r1")
            assert not tree.clean
            assert [name.partition("/")[0].partition(":")[0] for name in tree.left] == ["vendor"]

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
            assert await port.commit_there(stage.project, an_agent()) == head
            stage.lose(port.worktree_path(stage.project, an_agent()))
            assert await port.commit_there(stage.project, an_agent()) == ""
            assert await port.branch(stage.project, an_agent()) == head
            assert not await port.has_worktree(stage.project, an_agent())
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
            assert [set(key) for key in keys] == [{"web/uv.lock"}] * 2
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

    def test_a_reader_stands_at_the_commit_that_it_is_to_look_at(self, stage: GitStage) -> None:
        """Before it has a worktree and after; its branch is not shown to the user."""

        async def story(port: Git) -> None:
            reader = replace(an_agent("reader"), permissions=Permissions.READ)
            path, _ = await port.worktree(stage.project, an_agent())
            for text in ("first\n", "second\n"):
                stage.agent_commits(path, {"a.txt": text})
                head = (await port.look(stage.project, an_agent(), "r1")).head
                await port.renew(stage.project, reader, at=head)
                seen, _ = await port.worktree(stage.project, reader)
                assert stage.seen(seen) == FIRST | {"a.txt": text}
                tree = await port.look(stage.project, reader, "r2")
                assert (tree.head, tree.branch, tree.clean) == (head, "work/reader", True)
            assert "work/reader" not in stage.branches()

        play(stage, story)

    def test_a_branch_is_shown_as_soon_as_it_has_something_of_its_own(self, stage: GitStage) -> None:
        """Not before: whoever starts many agents finds no branches for nothing."""

        async def story(port: Git) -> None:
            path, _ = await port.worktree(stage.project, an_agent())
            stage.commit({"b.txt": "theirs\n"})
            await port.look(stage.project, an_agent(), "r1")
            assert "work/coder" not in stage.branches()
            stage.agent_commits(path, {"a.txt": "mine\n"})
            await port.look(stage.project, an_agent(), "r2")
            assert "work/coder" in stage.branches()

        play(stage, story)

    def test_a_reader_can_be_brought_to_what_another_has_committed_meanwhile(self, stage: GitStage) -> None:
        """Before anyone has looked at that one's work; where there is no worktree, there is nothing."""

        async def story(port: Git) -> None:
            reader = replace(an_agent("reader"), permissions=Permissions.READ)
            assert await port.branch(stage.project, an_agent()) == ""
            path, _ = await port.worktree(stage.project, an_agent())
            stage.agent_commits(path, {"a.txt": "mine\n"})
            await port.renew(stage.project, reader, at=await port.branch(stage.project, an_agent()))
            seen, _ = await port.worktree(stage.project, reader)
            assert stage.seen(seen) == FIRST | {"a.txt": "mine\n"}

        play(stage, story)

    def test_the_users_checkout_can_be_looked_at_as_it_is(self, stage: GitStage) -> None:
        """With what is not committed there, on top of what is; it is the same commit until something changes."""

        async def story(port: Git) -> None:
            reader = replace(an_agent("reader"), permissions=Permissions.READ)
            stage.edit({"draft.txt": "mine\n"})
            first = await port.checkout(stage.project)
            assert await port.checkout(stage.project) == first
            await port.renew(stage.project, reader, at=first)
            seen, _ = await port.worktree(stage.project, reader)
            assert stage.seen(seen) == FIRST | {"draft.txt": "mine\n"}
            assert (await port.look(stage.project, reader, "r1")).clean
            tip = stage.commit({"draft.txt": "mine\n"})
            assert await port.checkout(stage.project) == tip
            stage.edit({"draft.txt": None})
            await port.renew(stage.project, reader, at=await port.checkout(stage.project))
            assert stage.seen(seen) == FIRST

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


def test_no_question_fits_into_a_transaction() -> None:
    """What looks at a disk is awaited, so no transaction can ask it; the rest only computes names."""
    topics = (UserGit, WorktreeGit, WorkGit, LandingGit)
    plain = {name for topic in topics for name, method in vars(topic).items() if not iscoroutinefunction(method)}
    assert {name for name in plain if not name.startswith("_")} == {"worktree_path", "reach", "environment"}
