"""Planning with a thousand changes in line, beside the same with a hundred: it must not grow faster than the line."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from measure import Result, interleaved

from windlass.core.gate.planner import plan
from windlass.core.gate.stacks import QueuedChange, Rates, Rules, Trial, TrialVerdict

FEW, MANY = 100, 1000
RATES = Rates(bad=0.05, flaky=0.02)
RULES = Rules(runners=8)


def planner(*, quick: bool) -> Sequence[Result]:
    """In the middle of things: a third of them proven, some failed, some under way, some that need others."""
    ours, floor = interleaved(partial(_timed, MANY), partial(_timed, FEW), rounds=10 if quick else 30)
    what = f"a plan with {MANY} changes in line"
    return [
        Result(name="plan", what=f"{what} / with {FEW}", unit="ms", ours=ours, floor=floor, goal=12),
        Result(name="plan-time", what=what, unit="ms", ours=ours, goal=50),
    ]


def _timed(changes: int) -> float:
    entries, trials = _line(changes), _trials(changes)
    began = time.perf_counter()
    plan(entries, trials, (), RATES, RULES)
    return (time.perf_counter() - began) * 1000


def _line(changes: int) -> list[QueuedChange]:
    return [
        QueuedChange(
            change=f"c{number}",
            turn=number * 7919 % changes,
            proven=number % 3 == 0,
            needs=frozenset((f"c{number - 50}",)) if number % 50 == 0 else frozenset(),
        )
        for number in range(changes)
    ]


def _trials(changes: int) -> list[Trial]:
    """Stacks of ten: a fifth of the line failed, a fifth passed on an earlier main, and two are under way."""
    stacks = [tuple(f"c{number}" for number in range(first, first + 10)) for first in range(0, changes, 10)]
    fifth = len(stacks) // 5
    failed = [Trial(stack=stack, verdict=TrialVerdict.FAILED) for stack in stacks[:fifth]]
    passed = [Trial(stack=stack, verdict=TrialVerdict.PASSED, old=True) for stack in stacks[fifth : 2 * fifth]]
    return [*failed, *passed, *(Trial(stack=stack) for stack in stacks[-2:])]
