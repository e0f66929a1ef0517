"""What every implementation of the `Git` port promises about a repository that is gone, and about its hub."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_stages import STAGES, GitStage, an_agent, play

from windlass.core.ports.git import Git


@pytest.fixture(params=STAGES)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> GitStage:
    return STAGES[request.param](tmp_path)


def test_a_repository_that_is_gone_is_said_to_be_until_it_is_back(stage: GitStage) -> None:
    """With its path; main is then the last that was known, and after that where the user has it."""

    async def story(port: Git) -> None:
        assert await port.absence(stage.project) == ""
        tip = await port.main(stage.project)
        stage.take_away()
        assert await port.absence(stage.project) == f"its repository {stage.project.path} is gone"
        assert await port.main(stage.project) == tip
        assert await port.landed(stage.project, tip)
        stage.put_back()
        assert await port.absence(stage.project) == ""
        assert await port.main(stage.project) == tip

    play(stage, story)


def test_work_on_a_repository_that_is_gone_can_be_looked_at_and_saved(stage: GitStage) -> None:
    """What an agent has committed and what it has not, and also what it commits afterwards."""

    async def story(port: Git) -> None:
        agent = an_agent()
        path, _ = await port.worktree(stage.project, agent)
        stage.take_away()
        head = stage.agent_commits(path, {"new.txt": "new\n"})
        stage.write(path, {"draft.txt": "half\n"})
        seen = await port.look(stage.project, agent, "r1")
        assert (seen.head, seen.commits, [*seen.untracked]) == (head, 1, ["draft.txt"])
        ref = await port.remove_worktree(stage.project, agent)
        assert not await port.has_worktree(stage.project, agent)
        saved = {each.ref: each for each in await port.archive.saved(stage.project)}
        assert {*(await port.archive.contents(stage.project, saved[ref].commit)).files} == {"new.txt", "draft.txt"}

    play(stage, story)


def test_a_deleted_hub_has_nothing_saved_and_is_made_again(stage: GitStage) -> None:
    """Deleting one that is not there does nothing."""

    async def story(port: Git) -> None:
        agent = an_agent()
        path, _ = await port.worktree(stage.project, agent)
        stage.write(path, {"draft.txt": "half\n"})
        await port.remove_worktree(stage.project, agent)
        assert await port.archive.saved(stage.project)
        await port.delete_hub(stage.project)
        await port.delete_hub(stage.project)
        assert await port.archive.saved(stage.project) == []
        assert await port.main(stage.project) == stage.tip()

    play(stage, story)
