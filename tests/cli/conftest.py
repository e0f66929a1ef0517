"""A keyboard in a home of its own, a daemon that a test teaches what to answer, and a real one for the bridge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_daemon import FakeDaemon
from mcp_stage import Place, place
from typing_room import Keyboard


@pytest.fixture
def keyboard(tmp_path: Path) -> Keyboard:
    return Keyboard(tmp_path / "home", tmp_path)


@pytest.fixture
def daemon(keyboard: Keyboard) -> Iterator[FakeDaemon]:
    with FakeDaemon(keyboard.home) as fake:
        yield fake


@pytest.fixture(scope="module")
def here() -> Iterator[Place]:
    with place() as made:
        yield made
