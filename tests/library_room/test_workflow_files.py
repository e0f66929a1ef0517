"""Workflow files, good and broken, as they lie in `workflows/`."""

from __future__ import annotations

from pathlib import Path

import pytest

from windlass.library.workflows import load

FILES = Path(__file__).parent / "workflows"
GOOD = sorted((FILES / "good").glob("*.yaml"))


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_good_file_has_no_problem(path: Path) -> None:
    """Not even a warning."""
    loaded = load(path)

    assert [str(each) for each in loaded.problems] == []
    assert loaded.workflow is not None
