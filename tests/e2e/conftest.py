"""The real thing: daemon, git, processes and scripted agents, for each test or file on a stage of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from e2e_stage import Stage, stage


@pytest.fixture
def house() -> Iterator[Stage]:
    """A person with a repository on `main`, whose check passes. Nothing is left afterwards."""
    with stage() as made:
        yield made


@pytest.fixture(scope="module")
def shared_home() -> Iterator[Stage]:
    """One home and one daemon for a file of tests, which also names an `xdist_group`."""
    with stage(begun=False) as made:
        yield made


@pytest.fixture
def room(shared_home: Stage) -> Iterator[Stage]:
    """A repository on `main` in the shared home, whose check passes."""
    with shared_home.room() as made:
        yield made
