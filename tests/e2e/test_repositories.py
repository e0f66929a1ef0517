"""Agents of a project with several repositories, through the real program."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from e2e_stage import Stage, lines, stage

BOTH = lines(
    "for each in repo web",
    "do (cd $each && echo new > field.txt && git add -A && git commit -qm Rename)",
    "done",
    "windlass agent complete 'Renamed in both.'",
)


def test_a_change_in_two_repositories_lands_in_both() -> None:
    """`project.repositories` names the other one; each is tested by its own checks, the task waits for both."""
    with stage(checks="test -e field.txt") as house:
        other = _second(house)
        seen = house.wl("work", "Rename the field", "--command", BOTH, "--wait", "--json").value
        assert seen["landed"]
        assert house.git("show", "main:field.txt") == house.git("show", "main:field.txt", cwd=other) == "new"
        changes = house.wl("queue", "--all", "--json").value
        assert {change["state"] for change in changes} == {"landed"}
        assert len(changes) == 2
        shown = house.wl("diff", seen["agent"]["name"]).out
        assert shown.count("+new") == 2
        assert house.wl("doctor", "--check").code == 0


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap")
def test_in_a_sandbox_it_reaches_its_own_worktrees_and_no_checkout() -> None:
    """Both worktrees can be written to; the person's own checkouts are not there."""
    with stage(checks="test -e field.txt", settings="[sandbox]\n") as house:
        other = _second(house)
        peek = f"test ! -e '{other}/.git' && test ! -e '{house.repo}/.git' || exit 9"
        seen = house.wl(
            "work", "Rename the field", "--command", lines(peek, BOTH), "--sandbox", "on", "--wait", "--json"
        ).value
        assert seen["landed"]


def test_a_repository_that_is_not_there_is_refused_before_anything_begins() -> None:
    """The message names the path."""
    with stage(checks="true") as house:
        house.wl("config", "set", "project.repositories", "../nowhere")
        told = house.wl("work", "Rename", "--command", "true", code=None)
        assert told.code in (2, 3)
        assert "nowhere" in told.err
        assert house.wl("list", "--json").value == []


def _second(house: Stage) -> Path:
    other = house.folder / "web"
    house.git("clone", "-q", str(house.repo), str(other))
    house.wl("config", "set", "project.repositories", "../web")
    return other
