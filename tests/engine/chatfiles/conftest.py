"""The stage that stories of chat.md share."""

from __future__ import annotations

from pathlib import Path

import pytest
from chat_stage import ChatStage


@pytest.fixture
def stage(repo: Path, tmp_path: Path) -> ChatStage:
    (repo / ".git/info/exclude").write_text("/.windlass/\n")
    return ChatStage(repo, tmp_path / "home")
