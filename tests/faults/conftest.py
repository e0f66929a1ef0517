"""Stages for faults: the real thing, as in tests/e2e."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from e2e_stage import Stage, stage


@pytest.fixture
def house() -> Iterator[Stage]:
    """A person with a repository on `main`, whose check passes. Nothing is left afterwards."""
    with stage() as made:
        yield made
