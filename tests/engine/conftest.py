"""What stories of several files share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from radar_stage import LINES


@pytest.fixture
def shared(repo: Path, git: Callable[..., str]) -> Path:
    """A repository with a file that is long enough for two."""
    (repo / "shared.txt").write_text("".join(LINES))
    git("add", "-A", cwd=repo)
    git("commit", "-q", "-m", "A long file", cwd=repo)
    return repo
