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
    tries,
)

_DOOMED = 0.02
"""A stack that is less likely to pass than this is not tested to the end."""


def plan(
    entries: Sequence[QueuedChange], trials: Sequence[Trial], clashes: Sequence[Clash], rates: Rates, rules: Rules
) -> Plan:
    """Decide the next steps from the queue and all trials. After a landing, ask again."""
    queue = in_order(entries)
    beliefs = Beliefs(queue, trials, rates, strict=rules.strict)
    reject = tuple(entry.change for entry in queue if _is_bad(beliefs.alone[entry.change], rates, rules))
    left = _without(queue, reject)
    if reject:
        beliefs = Beliefs(left, forget(trials, reject), rates, strict=rules.strict)
    passed = [trial.stack for trial in trials if trial.verdict is TrialVerdict.PASSED and not trial.old]
    passed = [stack for stack in passed if beliefs.places.keys() >= set(stack)]
    land = _landing(left, passed, trials, beliefs, rules)
    running = [trial for trial in trials if trial.verdict is None]
    # of two trials of one stack, one may be old: then neither is stopped
    needed = {trial.stack for trial in running if not _useless(trial, land, beliefs)}
    stop = tuple(dict.fromkeys(trial.stack for trial in running if trial.stack not in needed))
    if land:
        return Plan(land=land, reject=reject, stop=stop)
    under_way = [trial for trial in running if trial.stack in needed]
    draft = Draft(left, beliefs, rules, clashes=clashes, under_way=under_way, passed=passed)
    return Plan(reject=reject, start=tuple(draft.starts(rules.runners - len(under_way))), stop=stop)


def _is_bad(failed: int, rates: Rates, rules: Rules) -> bool:
    """Whether a change has failed alone so often that it is not chance."""
    return failed > 0 and failed >= tries(rules.retries, rates, failed)


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
        able = [stack for stack in passed if all(stack[:depth] in passed for depth in range(1, len(stack)))]
    head = queue[0].change if queue else ""
    if head in beliefs.proven_before:
        able = [stack for stack in able if head in stack] or able
        waits = any(head in trial.stack and trial.verdict is None and not trial.old for trial in trials)
        able = [stack for stack in able if head in stack or not waits]
    return max(able, key=lambda stack: (len(stack), [-beliefs.places[change] for change in stack]), default=())


def _useless(trial: Trial, land: Stack, beliefs: Beliefs) -> bool:
    """Whether a verdict tells nothing: the stack lands, a part of it has left the queue, or it can hardly pass."""
    if not beliefs.places.keys() >= set(trial.stack) or set(trial.stack) <= set(land):
        return True
    if trial.old and all(change in beliefs.proven and change not in beliefs.group_of for change in trial.stack):
        return True
    return len(trial.stack) > 1 and beliefs.chance(trial.stack) < _DOOMED
