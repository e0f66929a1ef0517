"""What the gate knows of stacks, and what of it still counts when main or the line has changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from windlass.core.gate.stacks import Clash, Trial, TrialVerdict
from windlass.core.nouns.change import Candidate, CheckResult
from windlass.engine.gate.known_trials import KnownTrials
from windlass.engine.gate.known_trials import RunningCheck as Under

GREEN = CheckResult(command="check", tree="T", passed=True, exit_code=0, seconds=1.0, started_at=0.0)


def a_candidate(*stack: str) -> Candidate:
    return Candidate(commit="+".join(stack), tree="".join(stack), before="+".join(stack[:-1]), commits=("x",), files=())


@pytest.fixture
def trials() -> KnownTrials:
    """Four changes on a tip; stacks of them were put together and tested, one is under test."""
    made = KnownTrials(tip="tip", heads=dict.fromkeys("abcd", "1"))
    made.staged = {("a",): a_candidate("a"), ("a", "b"): a_candidate("a", "b"), ("c",): a_candidate("c")}
    made.finished = [Trial(stack=("a",), verdict=TrialVerdict.PASSED), Trial(stack=("c",), verdict=TrialVerdict.FAILED)]
    made.clashes = [
        Clash(under=("a",), change="d"),
        Clash(under=("a", "b"), change="c"),
        Clash(under=("c",), change="a"),
    ]
    made.tests = [Under(began=("a", "b"), trial=Trial(stack=("a", "b")))]
    made.sound = True
    return made


def test_what_stands_on_the_landed_stays_and_the_rest_is_old(trials: KnownTrials) -> None:
    """A test of both goes on as a test of the upper one, on the very tree; what stood elsewhere is only a hint."""
    trials.landed(("a",), "a")
    assert trials.all() == [Trial(stack=("c",), verdict=TrialVerdict.FAILED, old=True), Trial(stack=("b",))]
    assert trials.staged == {("b",): a_candidate("a", "b")}
    assert trials.chain(("b",)) == [a_candidate("a", "b")]


def test_what_clashed_with_the_landed_is_put_on_main_again(trials: KnownTrials) -> None:
    """Then it is its author who hears of it; what clashes with more than that is still known."""
    trials.landed(("a",), "a")
    assert trials.clashes == [Clash(under=("b",), change="c")]


def test_of_what_has_landed_in_part_nobody_is_said_to_fail_alone(trials: KnownTrials) -> None:
    """A test of c on b says nothing of c alone when b has landed with another."""
    trials.tests = [test := Under(began=("b", "c"), trial=Trial(stack=("b", "c")))]
    trials.landed(("a", "b"), "a+b")
    trials.ended(test, GREEN)
    assert trials.finished[-1] == Trial(stack=("c",), verdict=TrialVerdict.PASSED, old=True, mixed=True)
    assert not trials.told


def test_a_test_of_what_has_landed_altogether_is_waited_for_by_nobody(trials: KnownTrials) -> None:
    """It says nothing that is not known."""
    trials.landed(("a", "b"), "a+b")
    assert [test.dropped for test in trials.tests] == [True]
    assert [each for each in trials.all() if each.verdict is None] == []


def test_when_main_moved_without_us_nothing_stands(trials: KnownTrials) -> None:
    """What was put together is put together anew; what was found is a hint; main itself is unknown."""
    trials.follow("other", trials.heads)
    assert (trials.staged, trials.clashes, trials.sound) == ({}, [], None)
    assert all(each.old for each in trials.all())


def test_a_change_that_left_or_came_back_takes_all_with_it_that_it_was_part_of(trials: KnownTrials) -> None:
    """Other commits under the same name are another change."""
    trials.follow("tip", trials.heads | {"a": "2"})
    assert trials.staged == {("c",): a_candidate("c")}
    assert trials.all() == [Trial(stack=("c",), verdict=TrialVerdict.FAILED)]
    assert trials.clashes == []


def test_what_is_stored_of_a_tree_is_told_once(trials: KnownTrials) -> None:
    """A second test of it is a second test, and not the first one again."""
    assert trials.add_stored(("c",), [GREEN])
    assert not trials.add_stored(("c",), [GREEN])
    assert trials.finished[-1] == Trial(stack=("c",), verdict=TrialVerdict.PASSED)


@pytest.mark.parametrize("sound", [None, False])
def test_what_failed_on_a_main_that_was_not_found_sound_blames_nobody(
    trials: KnownTrials, *, sound: bool | None
) -> None:
    """Main has moved on, so nobody will find out whether it was to blame; what passed is a hint still."""
    trials.sound = sound
    [test] = trials.tests
    trials.follow("other", trials.heads)
    assert trials.all() == [
        Trial(stack=("a",), verdict=TrialVerdict.PASSED, old=True),
        Trial(stack=("a", "b"), old=True),
    ]
    trials.ended(test, replace(GREEN, passed=False))
    assert all(trial.verdict is not TrialVerdict.FAILED for trial in trials.finished)
    trials.ended(test, GREEN)
    assert trials.finished[-1] == Trial(stack=("a", "b"), verdict=TrialVerdict.PASSED, old=True)


def test_what_failed_on_what_has_landed_is_blamed_for_it(trials: KnownTrials) -> None:
    """Main may have been red, but is not any more where the landed stack has passed on it."""
    trials.sound = None
    [test] = trials.tests
    trials.landed(("a",), "a")
    trials.ended(test, replace(GREEN, passed=False))
    assert trials.finished == [Trial(stack=("b",), verdict=TrialVerdict.FAILED)]


def test_what_failed_on_a_main_that_is_red_says_nothing_of_anyone(trials: KnownTrials) -> None:
    """It was found out: what passed is known still, and nobody waits for what is under way."""
    trials.pardon()
    assert trials.all() == [Trial(stack=("a",), verdict=TrialVerdict.PASSED)]


def test_other_settings_make_all_of_it_old(trials: KnownTrials) -> None:
    """Another check command says something else; the same ones again change nothing."""
    trials.use("these")
    trials.follow("tip", trials.heads)
    assert (trials.staged, trials.sound) == ({}, None)
    trials.staged = {("a",): a_candidate("a")}
    trials.use("these")
    trials.follow("tip", trials.heads)
    assert trials.staged
