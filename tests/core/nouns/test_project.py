"""How a project stands, and why nothing lands there."""

from __future__ import annotations

from typing import Any

import pytest

from windlass.core.invariants import judge_forgotten, was_given_up
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import CheckResult
from windlass.core.nouns.project import Absence, Project, gone, halt, standing

SHOP: dict[str, Any] = {"id": "p", "name": "shop", "path": "/code/shop", "main": "main"}
RED = CheckResult(command="make", tree="t", passed=False, exit_code=1, seconds=1.0, started_at=1.0, reason="failed")
GONE = Absence(gone("/code/shop", folder=False), 10.0)


@pytest.mark.parametrize(
    ("project", "absence", "word", "why"),
    [
        (Project(**SHOP), None, "ready", ""),
        (Project(**SHOP, health=RED), None, "red", "main is red: failed (make)"),
        (Project(**SHOP, paused_at=1.0, health=RED), None, "paused", "the queue is paused"),
        (Project(**SHOP, paused_at=1.0), GONE, "gone", "its repository /code/shop is gone (noticed 2 min ago)"),
        (Project(**SHOP, forgotten_at=1.0), GONE, "forgotten", "its repository /code/shop is gone (noticed 2 min ago)"),
    ],
)
def test_what_weighs_most_is_said(project: Project, absence: Absence | None, word: str, why: str) -> None:
    """Forgotten, then gone, then paused, then red: what a person must mend first."""
    assert (standing(project, absence), halt(project, absence, 130.0)) == (word, why)


def test_an_absence_that_nobody_noticed_yet_has_no_age() -> None:
    """The reason alone, in the same words that are stored with waiting mail."""
    assert Absence("its repository /x is gone").told(5.0) == "its repository /x is gone"
    assert gone("/x", folder=True) == "its repository /x is gone: the folder is there, but no git repository"
    assert Project(**SHOP).forgotten == ""
    assert Project(**SHOP, forgotten_at=0.0).forgotten == "its project shop was forgotten"


@pytest.mark.parametrize(("retired", "deleted", "expected"), [(1.0, 2.0, True), (3.0, 2.0, False), (None, 2.0, False)])
def test_work_is_given_up_only_if_it_was_saved_before_the_hub_was_deleted(
    retired: float | None, deleted: float, expected: bool
) -> None:
    """What an agent does after the project came back is watched over as ever."""
    agent = Agent(name="coder", project="p", provider="command", retired_at=retired)
    assert was_given_up(agent, Project(**SHOP, hub_deleted_at=deleted)) is expected
    assert not was_given_up(agent, Project(**SHOP))
    assert not was_given_up(agent, None)


def test_what_goes_on_in_a_forgotten_project_is_named() -> None:
    """Each kind in a sentence; nothing where nothing goes on."""
    project = Project(**SHOP, forgotten_at=1.0)
    assert judge_forgotten(project, runs=[], tasks=[]) == []
    assert judge_forgotten(project, runs=[], changes=["c1", "c2"]) == [
        "shop was forgotten, but has changes that go on: c1, c2"
    ]
