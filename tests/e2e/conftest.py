"""The real thing: daemon, git, processes and scripted agents, for each test on a stage of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from e2e_stage import Stage, stage


@pytest.fixture
def house() -> Iterator[Stage]:
    """A person with a repository on `main`, whose check passes. Nothing is left afterwards."""
    with stage() as made:
        yield made
