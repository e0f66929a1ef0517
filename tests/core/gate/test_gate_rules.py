"""Which change is next, and what becomes of one that is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from windlass.core.gate import rules
from windlass.core.nouns.change import Candidate, Change, ChangeState, CheckResult, Hold, Landing
from windlass.core.settings.schema import CheckSettings, GateSettings, Limits

FIRST = Change(id="c1", project="p", branch="b", head="a", title="One", agent="otter", turn=1)
SECOND = replace(FIRST, id="c2", turn=2)
CHECKS = CheckSettings(command="make test")
LANDING = Landing(main="main", before="a", after="b", tree="T", commits=("c",), files=("f",), landed_at=1.0)


def test_the_line_goes_by_rank_then_by_turn() -> None:
    """What a person wants first goes before what came earlier; among equals the turn counts."""
    ranked = replace(SECOND, rank=1)
    assert sorted([SECOND, FIRST], key=rules.place_in_queue) == [FIRST, SECOND]
    assert sorted([FIRST, ranked], key=rules.place_in_queue) == [ranked, FIRST]
    assert sorted([ranked, replace(FIRST, rank=1)], key=rules.place_in_queue) == [replace(FIRST, rank=1), ranked]
    assert [(entry.change, entry.rank) for entry in rules.entries([FIRST, ranked])] == [("c1", 0), ("c2", 1)]


def test_a_change_is_proven_by_a_test_of_it_alone() -> None:
    """With others in the stack a green check says nothing of one of them; a red one proves nothing."""
    green = CheckResult(
        command="make test", tree="T", passed=True, exit_code=0, seconds=1.0, started_at=0.0, stack=("c1",)
    )
    for result, proven in (
        (green, True),
        (replace(green, stack=("c2", "c1")), False),
        (replace(green, passed=False), False),
    ):
        assert rules.entries([replace(FIRST, checks=(result,))])[0].proven == proven


def test_the_parts_of_a_change_are_the_top_folders_that_it_touches() -> None:
    """Before it was put together once, it may touch any; whether parts count is a setting."""
    made = Candidate(commit="x", tree="T", before="a", commits=("c",), files=("src/a.py", "src/deep/b.py", "README.md"))
    first, second = rules.entries([replace(FIRST, candidate=made), SECOND])
    assert (first.parts, second.parts) == (frozenset(("src", "README.md")), frozenset())
    for wanted in (True, False):
        assert rules.rules(GateSettings(partition=wanted), processors=2, alone=False).partition == wanted


@pytest.mark.parametrize(("wanted", "processors", "runners"), [(0, 1, 1), (0, 6, 3), (0, 64, 8), (5, 1, 5)])
def test_half_the_processors_test_unless_it_is_said(wanted: int, processors: int, runners: int) -> None:
    """At least one, and not more than eight by ourselves."""
    assert rules.rules(GateSettings(runners=wanted), processors=processors, alone=False).runners == runners


def test_rates_are_learned_from_what_was() -> None:
    """Returned changes were bad; what failed and passed on one tree failed by chance; much counts more than little."""
    green = CheckResult(command="make test", tree="T", passed=True, exit_code=0, seconds=1.0, started_at=0.0)
    red = replace(green, passed=False)
    steady = [replace(FIRST, id=f"c{each}", landing=LANDING, checks=(green,)) for each in range(50)]
    flaky = [replace(each, checks=(red, green)) for each in steady]
    bad = [replace(each, failures=1, checks=(replace(red, tree="U"), green)) for each in steady]
    nothing, calm, shaky, poor = (rules.rates(each) for each in ([], steady, flaky, bad))
    assert calm.bad < nothing.bad < poor.bad
    assert calm.flaky < nothing.flaky < shaky.flaky
    assert poor.flaky < shaky.flaky


def test_what_is_in_the_way_of_a_stack_is_found_by_trying_each_alone() -> None:
    """Stacks hold one change each until something has landed."""
    assert rules.rules(GateSettings(), processors=2, alone=True).largest == 1


def test_a_hold_for_checks_ends_when_there_is_a_command() -> None:
    """Setting a check command lets the waiting changes go on by themselves."""
    held = replace(FIRST, state=ChangeState.HELD, hold=Hold.CHECKS)

    assert rules.to_release([held], CheckSettings(), due={"c1"}) == []
    assert rules.to_release([held], CHECKS, due=()) == [held]


@pytest.mark.parametrize("hold", [Hold.CHECKOUT, Hold.TROUBLE, Hold.HUMAN])
def test_what_something_outside_holds_is_looked_at_from_time_to_time(hold: Hold) -> None:
    """Local changes in the way, a disk that was full, a merge by hand: they come and go without telling us."""
    held = replace(FIRST, state=ChangeState.HELD, hold=hold)

    assert rules.to_release([held], CHECKS, due=()) == []
    assert rules.to_release([held], CHECKS, due={"c1"}) == [held]


def test_a_result_counts_again_only_for_the_same_tree_and_command() -> None:
    """A green check is reused when nothing it depends on has changed."""
    green = CheckResult(command="make test", tree="T", passed=True, exit_code=0, seconds=1.0, started_at=0.0)
    change = replace(FIRST, checks=(green,))

    assert rules.known_results([SECOND, change], "T", CHECKS) == [green]
    assert rules.known_results([change, replace(change, id="c2")], "T", CHECKS) == [green]  # told once
    assert rules.known_results([change], "other", CHECKS) == []
    assert rules.known_results([change], "T", CheckSettings(command="true")) == []
    missing = replace(green, passed=False, exit_code=127)
    assert rules.known_results([replace(change, checks=(missing,))], "T", CHECKS) == []  # it may be there by now


def test_a_refused_change_goes_back_then_to_a_person() -> None:
    """The author mends it a limited number of times; a change without an author is only refused."""
    limits = Limits(returns=2)

    assert rules.decide_refusal(FIRST, limits) == rules.AfterRefusal.RETURN
    assert rules.decide_refusal(replace(FIRST, returns=2), limits) == rules.AfterRefusal.ESCALATE
    assert rules.decide_refusal(replace(FIRST, agent=""), limits) == rules.AfterRefusal.CLOSE
    assert rules.decide_refusal(FIRST, limits, unfit=True) == rules.AfterRefusal.RETURN
    assert rules.decide_refusal(replace(FIRST, returns=1), limits, unfit=True) == rules.AfterRefusal.ESCALATE
