"""What every implementation of the `Git` port promises about reading commits, and mixing two of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_stages import FIRST, STAGES, GitStage, play, staged

from windlass.core.ports.git import Git


@pytest.fixture(params=STAGES)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> GitStage:
    return STAGES[request.param](tmp_path)


def test_files_of_a_commit_are_read_and_mixed_with_those_of_another(stage: GitStage) -> None:
    """What the other has not is not there; the mixture is a tree of its own, and nothing has moved."""

    async def story(port: Git) -> None:
        candidate = await staged(stage, {"a.txt": "mine\n", "new.txt": "new\n", "b.txt": None})
        names = ("a.txt", "new.txt", "b.txt", "gone.txt", "dir")
        assert await port.texts(stage.project, candidate.commit, names) == {"a.txt": "mine\n", "new.txt": "new\n"}
        mixed = await port.mixed(stage.project, candidate, stage.tip(), ("new.txt", "b.txt", "gone.txt"))
        assert mixed.tree not in (candidate.tree, "")
        await port.archive.to_folder(stage.project, mixed.commit, stage.folder("mixed"))
        assert stage.read_folder(stage.folder("mixed")) == FIRST | {"a.txt": "mine\n"}
        assert stage.files() == FIRST

    play(stage, story)
