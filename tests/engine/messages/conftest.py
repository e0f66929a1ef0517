"""The room that stories of messages share."""

from __future__ import annotations

from pathlib import Path

import pytest
from talk_room import Room


@pytest.fixture
def room(repo: Path, tmp_path: Path) -> Room:
    return Room(repo, tmp_path / "home")
