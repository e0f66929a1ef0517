"""The planner of the gate: what lands, what goes back, and what is tested next. Pure; engine and simulation call it."""

from __future__ import annotations

from collections.abc import Sequence

from windlass.core.gate.next_stacks import Draft
from windlass.core.gate.odds import Beliefs
from windlass.core.gate.stacks import (
    Clash,
    Plan,
    QueuedChange,
    Rates,
    Rules,
    Stack,
    Trial,
    TrialVerdict,
    forget,
    in_order,
)

_DOOMED = 0.02
"""A stack that is less likely to pass than this is not tested to the end."""


def plan(
    entries: Sequence[QueuedChange], trials: Sequence[Trial], clashes: Sequence[Clash], rates: Rates, rules: Rules
) -> Plan:
    """What to do now, from the line and all that is known about it. After a landing, ask again."""
    line = in_order(entries)
    beliefs = Beliefs(line, trials, rates, strict=rules.strict)
    reject = tuple(each.change for each in line if beliefs.alone[each.change] > rules.retries)
    left = _without(line, reject)
    if reject:
        beliefs = Beliefs(left, forget(trials, reject), rates, strict=rules.strict)
    passed = [each for each in _passed(trials) if beliefs.places.keys() >= set(each)]
    land = _landing(left, passed, trials, beliefs, rules)
    stop = _stopped([trial for trial in trials if trial.verdict is None], land, beliefs)
    if land:
        return Plan(land=land, reject=reject, stop=stop)
    under_way = [trial for trial in trials if trial.verdict is None and trial.stack not in stop]
    draft = Draft(left, beliefs, rules, clashes=clashes, under_way=under_way, passed=passed)
    start = draft.starts(rules.runners - len(under_way))
    return Plan(reject=reject, start=tuple(start), stop=stop)


def _without(line: Sequence[QueuedChange], gone: Sequence[str]) -> list[QueuedChange]:
    """The line without these, and without what needs them."""
    out = set(gone)
    for each in line:
        if not out.isdisjoint(each.needs):
            out.add(each.change)
    return [each for each in line if each.change not in out]


def _passed(trials: Sequence[Trial]) -> list[Stack]:
    return [trial.stack for trial in trials if trial.verdict is TrialVerdict.PASSED and not trial.old]


def _landing(
    line: Sequence[QueuedChange], passed: list[Stack], trials: Sequence[Trial], beliefs: Beliefs, rules: Rules
) -> Stack:
    """The deepest stack that passed. The first in line is not overtaken once it has passed on an earlier main."""
    able = passed
    if rules.strict:
        able = [each for each in passed if all(each[:depth] in passed for depth in range(1, len(each)))]
    head = line[0].change if line else ""
    if head in beliefs.proven_before:
        able = [each for each in able if head in each] or able
        waits = any(head in trial.stack and trial.verdict is None and not trial.old for trial in trials)
        able = [each for each in able if head in each or not waits]
    return max(able, key=lambda each: (len(each), [-beliefs.places[change] for change in each]), default=())


def _stopped(under_way: Sequence[Trial], land: Stack, beliefs: Beliefs) -> tuple[Stack, ...]:
    """Stacks that are tested to no purpose. Two trials can have the same, one of them old: then neither is stopped."""
    needed = {each.stack for each in under_way if not _useless(each, land, beliefs)}
    return tuple(dict.fromkeys(each.stack for each in under_way if each.stack not in needed))


def _useless(trial: Trial, land: Stack, beliefs: Beliefs) -> bool:
    """Whether a verdict would tell nothing: all of it lands, or some of it has left the line, or it can hardly pass."""
    if not beliefs.places.keys() >= set(trial.stack) or set(trial.stack) <= set(land):
        return True
    if trial.old and all(each in beliefs.proven and each not in beliefs.group_of for each in trial.stack):
        return True
    return len(trial.stack) > 1 and beliefs.chance(trial.stack) < _DOOMED
