"""The planner of the gate decides which changes land, which are rejected, and which stacks are tested next."""

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
    """Decide the next steps from the queue and all trials. After a landing, ask again."""
    queue = in_order(entries)
    beliefs = Beliefs(queue, trials, rates, strict=rules.strict)
    reject = tuple(entry.change for entry in queue if beliefs.alone[entry.change] > rules.retries)
    left = _without(queue, reject)
    if reject:
        beliefs = Beliefs(left, forget(trials, reject), rates, strict=rules.strict)
    passed = [trial.stack for trial in trials if trial.verdict is TrialVerdict.PASSED and not trial.old]
    passed = [stack for stack in passed if beliefs.places.keys() >= set(stack)]
    land = _landing(left, passed, trials, beliefs, rules)
    stop = _stopped([trial for trial in trials if trial.verdict is None], land, beliefs)
    if land:
        return Plan(land=land, reject=reject, stop=stop)
    under_way = [trial for trial in trials if trial.verdict is None and trial.stack not in stop]
    draft = Draft(left, beliefs, rules, clashes=clashes, under_way=under_way, passed=passed)
    start = draft.starts(rules.runners - len(under_way))
    return Plan(reject=reject, start=tuple(start), stop=stop)


def _without(queue: Sequence[QueuedChange], gone: Sequence[str]) -> list[QueuedChange]:
    """The queue without these changes, and without those that need them."""
    out = set(gone)
    for entry in queue:
        if not out.isdisjoint(entry.needs):
            out.add(entry.change)
    return [entry for entry in queue if entry.change not in out]


def _landing(
    queue: Sequence[QueuedChange], passed: list[Stack], trials: Sequence[Trial], beliefs: Beliefs, rules: Rules
) -> Stack:
    """The deepest stack that passed. The first in the queue is not overtaken once it has passed on an earlier main."""
    able = passed
    if rules.strict:
        able = [each for each in passed if all(each[:depth] in passed for depth in range(1, len(each)))]
    head = queue[0].change if queue else ""
    if head in beliefs.proven_before:
        able = [each for each in able if head in each] or able
        waits = any(head in trial.stack and trial.verdict is None and not trial.old for trial in trials)
        able = [each for each in able if head in each or not waits]
    return max(able, key=lambda each: (len(each), [-beliefs.places[change] for change in each]), default=())


def _stopped(under_way: Sequence[Trial], land: Stack, beliefs: Beliefs) -> tuple[Stack, ...]:
    """Running stacks whose verdict is useless. Of two trials of one stack, one may be old: then neither is stopped."""
    needed = {each.stack for each in under_way if not _useless(each, land, beliefs)}
    return tuple(dict.fromkeys(each.stack for each in under_way if each.stack not in needed))


def _useless(trial: Trial, land: Stack, beliefs: Beliefs) -> bool:
    """Whether a verdict tells nothing: the stack lands, a part of it has left the queue, or it can hardly pass."""
    if not beliefs.places.keys() >= set(trial.stack) or set(trial.stack) <= set(land):
        return True
    if trial.old and all(each in beliefs.proven and each not in beliefs.group_of for each in trial.stack):
        return True
    return len(trial.stack) > 1 and beliefs.chance(trial.stack) < _DOOMED
