"""An agent has its work checked before it is done: it learns what fails, and what passed is not tested again."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e_stage import Stage, lines, stage

LOGGED = '[ ! -e a.txt ] || echo ran >> "{log}"; echo "Ran 3 tests in 0.1s"; ! grep -q bad *.txt'
"""It counts the checks of the agent's work; main, which may be looked at beside it, has no a.txt."""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def committed(name: str, text: str) -> str:
    return f"echo {text} > {name}; git add -A; git commit -qm {text}"


def checks_of(house: Stage) -> list[bool]:
    [change] = house.queue()
    return [each["passed"] for each in change["checks"]]


def test_what_passed_before_lands_without_another_check(log: Path) -> None:
    """The first time it fails and says why; mended, it passes; the gate takes that for the same tree."""
    with stage(checks=LOGGED.format(log=log), WINDLASS_SANDBOX="off") as house:
        told = house.folder / "told"
        steps = lines(
            committed("a.txt", "bad"),
            f"windlass agent check > '{told}' 2>&1 && exit 9",
            committed("a.txt", "good"),
            f"windlass agent check >> '{told}' 2>&1 || exit 8",
        )
        house.wl("work", "Add a", "--command", steps, "--wait")
        assert log.read_text().splitlines() == ["ran", "ran"]
        assert checks_of(house) == [True]
        said = told.read_text()
        assert said.index("The checks did not pass.") < said.index("passed in")
        assert house.wl("receipt", "c1", "--json").value["tests"]["after"] == {"ran": 3, "skipped": 0}
        assert house.wl("doctor", "--check").code == 0


def test_with_commits_made_since_it_is_tested_as_ever(log: Path) -> None:
    """A result is about the commits that were there."""
    with stage(checks=LOGGED.format(log=log), WINDLASS_SANDBOX="off") as house:
        steps = lines(committed("a.txt", "one"), "windlass agent check || exit 8", committed("b.txt", "two"))
        house.wl("work", "Add both", "--command", steps, "--wait")
        assert log.read_text().splitlines() == ["ran", "ran"]


def test_nothing_to_check_is_said_so(log: Path) -> None:
    """Before the first commit, and by a person, who is no run."""
    with stage(checks=LOGGED.format(log=log), WINDLASS_SANDBOX="off") as house:
        told = house.folder / "told"
        steps = lines(f"windlass agent check > '{told}' 2>&1 || true", committed("a.txt", "one"))
        house.wl("work", "Add a", "--command", steps, "--wait")
        assert "main has all that you have committed" in told.read_text()
        assert house.wl("agent", "check", code=None).code != 0
