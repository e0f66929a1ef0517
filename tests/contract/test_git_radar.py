"""What every implementation of the `Git` port promises about comparing agents' work while they are at it."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_stages import STAGES, GitStage, an_agent, committed, play

from fakes.repository import Edits
from windlass.core.errors import NotFound
from windlass.core.ports.git import Git
from windlass.core.radar.collisions import QuickLook


@pytest.fixture(params=STAGES)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> GitStage:
    return STAGES[request.param](tmp_path)


async def glimpse(stage: GitStage, edits: Edits, name: str) -> QuickLook:
    """An agent's work with edits that it has not committed."""
    path, _ = await stage.port.worktree(stage.project, an_agent(name))
    stage.write(path, edits)
    return await stage.port.quick_look(stage.project, an_agent(name))


class TestGlance:
    def test_it_names_all_that_differs_from_main(self, stage: GitStage) -> None:
        """What is new, gone and changed, committed or not, against the commit of main that the branch stands on."""

        async def story(port: Git) -> None:
            head = await committed(stage, {"a.txt": "mine\n"})
            base = stage.tip()
            stage.commit({"b.txt": "newer\n"})
            seen = await glimpse(stage, {"dir/c.txt": None, "new.txt": "new\n"}, "coder")
            assert (seen.head, seen.base) == (head, base)
            assert [*seen.edited, *seen.removed, *seen.added] == ["a.txt", "dir/c.txt", "new.txt"]

        play(stage, story)

    def test_the_same_work_is_the_same_glimpse(self, stage: GitStage) -> None:
        """Looked at twice, it is the same; after an edit it is not."""

        async def story(port: Git) -> None:
            first = await glimpse(stage, {"a.txt": "mine\n"}, "coder")
            assert first.work == (await port.quick_look(stage.project, an_agent())).work
            assert first.work != (await glimpse(stage, {"a.txt": "mine, too\n"}, "coder")).work

        play(stage, story)

    def test_it_is_shown_to_nobody(self, stage: GitStage) -> None:
        """The user sees no branch, and nothing is kept as a snapshot."""

        async def story(port: Git) -> None:
            path, _ = await port.worktree(stage.project, an_agent())
            stage.agent_commits(path, {"a.txt": "mine\n"})
            await port.quick_look(stage.project, an_agent())
            with pytest.raises((KeyError, AssertionError)):
                stage.tip("work/coder")
            assert await port.archive.saved(stage.project, an_agent()) == []

        play(stage, story)

    def test_a_lost_worktree_is_said(self, stage: GitStage) -> None:
        """An agent without a worktree has nothing to look at."""

        async def story(port: Git) -> None:
            path, _ = await port.worktree(stage.project, an_agent())
            stage.lose(path)
            with pytest.raises(NotFound):
                await port.quick_look(stage.project, an_agent())

        play(stage, story)

    def test_a_snapshot_after_it_is_whole(self, stage: GitStage) -> None:
        """Work that a quick look saw is in the next snapshot and rescue, although the quick look's own copy is gone."""

        async def story(port: Git) -> None:
            await glimpse(stage, {"a.txt": "mine\n", "new.txt": "new\n"}, "coder")
            tree = await port.look(stage.project, an_agent(), "r1")
            assert (tree.changed, tree.untracked) == (("a.txt",), ("new.txt",))
            await port.quick_look(stage.project, an_agent())
            ref = await port.remove_worktree(stage.project, an_agent())
            saved = {each.ref: each.commit for each in await port.archive.saved(stage.project, an_agent())}
            await port.archive.to_folder(stage.project, saved[ref], stage.folder("back"))
            assert stage.read_folder(stage.folder("back"))["new.txt"] == "new\n"

        play(stage, story)


class TestClash:
    def test_works_that_change_one_file_differently_clash_in_it(self, stage: GitStage) -> None:
        """Neither has to be committed."""

        async def story(port: Git) -> None:
            one = await glimpse(stage, {"a.txt": "mine\n", "b.txt": "mine\n"}, "one")
            other = await glimpse(stage, {"a.txt": "theirs\n"}, "other")
            assert await port.clash(stage.project, one, other) == ("a.txt",)
            assert await port.clash(stage.project, other, one) == ("a.txt",)

        play(stage, story)

    def test_works_that_change_different_files_or_the_same_alike_do_not(self, stage: GitStage) -> None:
        """There is nothing to merge by hand."""

        async def story(port: Git) -> None:
            one = await glimpse(stage, {"a.txt": "mine\n", "b.txt": "alike\n"}, "one")
            other = await glimpse(stage, {"b.txt": "alike\n", "new.txt": "new\n"}, "other")
            assert await port.clash(stage.project, one, other) == ()

        play(stage, story)

    def test_main_as_it_has_become_is_compared_like_a_work(self, stage: GitStage) -> None:
        """What a person has committed since is in the way of what an agent changes."""

        async def story(port: Git) -> None:
            one = await glimpse(stage, {"a.txt": "mine\n"}, "one")
            assert (await port.since(stage.project, one.base)).files == frozenset()
            tip = stage.commit({"a.txt": "theirs\n", "b.txt": None})
            main = await port.since(stage.project, one.base)
            assert [main.commit, *main.edited, *main.removed] == [tip, "a.txt", "b.txt"]
            assert await port.clash(stage.project, main, one) == ("a.txt",)

        play(stage, story)
