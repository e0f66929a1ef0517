"""Which change is next, and what becomes of one that is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from windlass.core import gate
from windlass.core.change import Change, ChangeState, CheckResult, Hold
from windlass.core.settings import CheckSettings, Limits

FIRST = Change(id="c1", project="p", branch="b", head="a", title="One", agent="otter", turn=1)
SECOND = replace(FIRST, id="c2", turn=2)
CHECKS = CheckSettings(command="make test")


def test_the_oldest_is_next() -> None:
    """Changes are taken in the order they were queued, not in the order they are listed."""
    assert gate.next_change([SECOND, FIRST]) == FIRST


def test_what_a_person_wants_first_is_next() -> None:
    """A higher rank goes before an earlier turn; among equals the turn counts."""
    ranked = replace(SECOND, rank=1)

    assert gate.next_change([FIRST, ranked]) == ranked
    assert gate.next_change([replace(FIRST, rank=1), ranked]) == replace(FIRST, rank=1)


def test_what_was_under_test_when_we_died_is_taken_up_first() -> None:
    """A restart goes on where it was."""
    testing = replace(SECOND, state=ChangeState.TESTING)

    assert gate.next_change([FIRST, testing]) == testing


@pytest.mark.parametrize("state", [ChangeState.HELD, ChangeState.REJECTED, ChangeState.LANDED, ChangeState.CLOSED])
def test_what_is_not_queued_is_not_next(state: ChangeState) -> None:
    """Only queued changes are tried."""
    assert gate.next_change([replace(FIRST, state=state)]) is None


def test_a_hold_for_checks_ends_when_there_is_a_command() -> None:
    """Setting a check command lets the waiting changes go on by themselves."""
    held = replace(FIRST, state=ChangeState.HELD, hold=Hold.CHECKS)

    assert gate.to_release([held], CheckSettings(), due={"c1"}) == []
    assert gate.to_release([held], CHECKS, due=()) == [held]


@pytest.mark.parametrize("hold", [Hold.CHECKOUT, Hold.TROUBLE, Hold.HUMAN])
def test_what_something_outside_holds_is_looked_at_from_time_to_time(hold: Hold) -> None:
    """Local changes in the way, a disk that was full, a merge by hand: they come and go without telling us."""
    held = replace(FIRST, state=ChangeState.HELD, hold=hold)

    assert gate.to_release([held], CHECKS, due=()) == []
    assert gate.to_release([held], CHECKS, due={"c1"}) == [held]


def test_a_result_counts_again_only_for_the_same_tree_and_command() -> None:
    """A green check is reused when nothing it depends on has changed."""
    green = CheckResult(command="make test", tree="T", passed=True, exit_code=0, seconds=1.0, started_at=0.0)
    change = replace(FIRST, checks=(green,))

    assert gate.known_result(change, "T", CHECKS) == green
    assert gate.known_result(change, "other", CHECKS) is None
    assert gate.known_result(change, "T", CheckSettings(command="true")) is None
    assert gate.known_result(replace(change, checks=(replace(green, passed=False),)), "T", CHECKS) is None


def test_a_refused_change_goes_back_then_to_a_person() -> None:
    """The author mends it a limited number of times; a change without an author is only refused."""
    limits = Limits(returns=2)

    assert gate.decide_refusal(FIRST, limits) == gate.Return()
    assert gate.decide_refusal(replace(FIRST, returns=2), limits) == gate.Escalate()
    assert gate.decide_refusal(replace(FIRST, agent=""), limits) == gate.Refuse()
