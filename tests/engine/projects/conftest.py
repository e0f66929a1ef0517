"""The stage that stories of defined agents share."""

from __future__ import annotations

from pathlib import Path

import pytest
from agent_stage import CODER, define
from stage import Stage


@pytest.fixture
def stage(repo: Path, tmp_path: Path) -> Stage:
    define(repo, "coder", CODER)
    define(repo, "reviewer", "---\nname: reviewer\nrole: x\n---\n")
    (repo / ".git/info/exclude").write_text("/.windlass/\n.env\n")
    return Stage(repo, tmp_path / "home")
