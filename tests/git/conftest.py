"""A world for each test of git."""

from __future__ import annotations

from pathlib import Path

import pytest
from gitkit import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path).begin()
