"""The gate's planner in worlds of chance: never wrong, and as fast as promised.."""

from __future__ import annotations

import random

import pytest

import sample
from windlass.core.gate.simulation import Setting, World, WorldResult, imagine, play, serial, summed
from windlass.core.gate.stacks import Rules
from windlass.core.settings.schema import Limits

SEEDS = sample.WORLDS.of(range(10_000))
"""Worlds of any kind."""
FOR_EACH_GOAL = 200 if sample.long() else 10


def a_setting(seed: int) -> Setting:
    """Any kind of world, and any way for the gate to work."""
    choose = random.Random(f"setting {seed}").choice
    rules = Rules(
        runners=choose((1, 1, 2, 3, 4, 8, 16)),
        strict=choose((False, False, False, True)),
        retries=choose((0, 1, 1, 1, 2)),
        largest=choose((100, 100, 10, 3)),
    )
    return Setting(
        branches=choose((1, 2, 5, 20, 50, 100)),
        bad=choose((0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 0.9)),
        flaky=choose((0.0, 0.02, 0.02, 0.1)),
        conflict=choose((0.0, 0.02, 0.1, 0.3)),
        together=choose((0.0, 0.01, 0.05, 0.2)),
        proven=choose((False, False, True)),
        spread=choose((0.0, 0.5, 5.0)),
        rules=rules,
    )


def played(seeds: int, **world: float) -> WorldResult:
    setting = Setting(bad=world["bad"], conflict=world.get("conflict", 0.0), rules=Rules(runners=int(world["runners"])))
    return summed(play(setting, random.Random(seed)) for seed in range(seeds))


def test_the_gate_is_never_wrong() -> None:
    """Main is never red, nothing bad or untested lands, all are decided, and only chance sends a good change back."""
    for seed in SEEDS:
        setting = a_setting(seed)
        found = play(setting, random.Random(seed))
        wrong = (
            found.broken_mains,
            found.wrong_landings,
            found.wrong_rejections - found.unlucky_rejections,
            found.stuck,
        )
        assert wrong == (0, 0, 0, 0), f"seed {seed}: {found} in {setting}"


@pytest.mark.parametrize(
    ("bad", "runners", "goal"),
    [(0.0, 1, 25.0), (0.05, 1, 2.5), (0.05, 8, 6.0), (0.2, 2, 1.7), (0.3, 1, 0.95), (0.5, 1, 0.95), (0.9, 1, 0.95)],
)
def test_it_is_as_fast_as_promised(bad: float, runners: int, goal: float) -> None:
    """Against one change after the other, with 100 changes and 2 % flakes; rates are learned on the way."""
    found = played(FOR_EACH_GOAL, bad=bad, runners=runners)

    assert found.serial_rounds / found.rounds >= goal


@pytest.mark.parametrize(("runners", "largest"), [(1, 1), (1, 100), (2, 100), (4, 100)])
def test_no_good_change_is_lost_where_three_of_ten_checks_fail_by_chance(runners: int, largest: int) -> None:
    """Of 20 good changes all land, in the order of the queue or stacked; hardly one goes back for nothing."""
    rules = Rules(runners=runners, largest=largest)
    setting = Setting(branches=20, bad=0.0, flaky=0.3, conflict=0.0, returns=Limits().returns, rules=rules)
    found = summed(play(setting, random.Random(seed)) for seed in range(FOR_EACH_GOAL * 10))

    assert (found.lost, found.stuck, found.landed) == (0, 0, FOR_EACH_GOAL * 200)
    assert found.wrong_rejections / found.landed < 0.03


def test_the_same_seed_is_the_same_world() -> None:
    """So that a history can be looked at again."""
    setting = Setting(branches=30, bad=0.2, together=0.1)

    assert play(setting, random.Random(7)) == play(setting, random.Random(7))


def test_of_two_that_are_red_together_one_lands() -> None:
    """Green alone is not enough, and nobody else suffers."""
    setting = Setting(branches=2, bad=0.0, flaky=0.0, conflict=0.0, together=1.0)
    found = summed(play(setting, random.Random(seed)) for seed in range(20))
    pairs = sum(bool(imagine(setting, random.Random(seed)).red) for seed in range(20))

    assert pairs > 5
    assert (found.landed, found.rejected, found.wrong_rejections) == (40 - pairs, pairs, 0)


def test_what_conflicts_with_main_is_returned() -> None:
    """The first of two lands, the other goes to its author without a test."""
    setting = Setting(branches=60, bad=0.0, flaky=0.0, conflict=0.5)
    found = play(setting, random.Random(1))

    assert found.returned > 5
    assert found.landed + found.returned == 60


def test_serial_retries_what_failed() -> None:
    """A bad change costs a run and its retries, a good one a run."""
    world = World(("a", "b", "c"), frozenset("b"), frozenset(), frozenset())
    setting = Setting(flaky=0.0, rules=Rules(retries=2))

    assert serial(world, setting, random.Random(1)) == 1 + 3 + 1


def test_proven_changes_hold_no_bad_one_up() -> None:
    """Bad ones do not get into line, and the rest lands in few rounds with one runner."""
    found = play(Setting(bad=0.5, flaky=0.0, conflict=0.0, proven=True), random.Random(3))

    assert (found.rejected, found.rounds) == (0, 1)
