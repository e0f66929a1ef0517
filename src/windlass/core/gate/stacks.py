"""The planner's input and answer: changes in the queue, trials of stacks, and a plan."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

Stack = tuple[str, ...]
"""Changes on top of main, bottom first."""

_BAD = (0.15, 6.0)
_FLAKY = (1.0, 50.0)
"""Assumed before anything was measured: how many, of how many."""
_USUAL, _TRIES = 0.02, 30
"""So many checks fail by chance anywhere. Beyond that a change gets more tries: 2 where one of ten does, 8 where three
of ten do."""
_MORE, _UNSEEN, _HARDLY = 5, 0.5, 1e-3
"""So many checks and flakes more may have been, for all that was seen; a chance that is smaller than this is none."""


class TrialVerdict(StrEnum):
    PASSED = "passed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedChange:
    """A change in the queue."""

    change: str
    turn: int
    """Its place: the lower, the sooner."""
    rank: int = 0
    """Goes before turns: the higher, the sooner."""
    needs: frozenset[str] = frozenset()
    """Changes that must be below it, or have landed; one that is not in the queue counts as landed."""
    proven: bool = False
    """A check of it passed, on its own tree or in a stack on an earlier main."""
    parts: frozenset[str] = frozenset()
    """The parts of the repository that it touches; nothing: it may touch any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One check of one stack on main."""

    stack: Stack
    verdict: TrialVerdict | None = None
    """None while it is under way."""
    old: bool = False
    """Main has moved since it began: it still tells which change is bad, but nothing lands on it."""
    mixed: bool = False
    """A part of it has landed in another stack: the rest says nothing about a change alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clash:
    """A change could not be put on top of these."""

    under: Stack
    change: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """How often changes are bad, and how often a check fails by chance."""

    bad: float
    flaky: float
    runs: int = 0
    """How many checks this was measured on …"""
    flaked: int = 0
    """… and how many of them failed by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The gate's rules."""

    runners: int = 1
    """How many trials may be under way at once."""
    strict: bool = False
    """Every change that lands has passed with all below it, not only the last of a stack."""
    retries: int = 1
    """How often a change that failed alone is tried again."""
    partition: bool = False
    """Changes that share parts are tested together, those that share none apart."""
    largest: int = 100
    """How many changes one stack may hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The next steps."""

    land: Stack = ()
    """Main may move to this stack: it passed as it is."""
    reject: tuple[str, ...] = ()
    """They fail by themselves: back to their authors."""
    start: tuple[Stack, ...] = ()
    """Stacks to test now, the most wanted first; never more than there are free runners."""
    stop: tuple[Stack, ...] = ()
    """Stacks under test whose verdict nobody needs any more."""


def rebase(trials: Iterable[Trial], landed: Stack) -> tuple[Trial, ...]:
    """Trials after this stack landed: those that begin with it have the same tree still, the others are old."""
    return tuple(kept for trial in trials if (kept := _rebased(trial, landed)).stack)


def _rebased(trial: Trial, landed: Stack) -> Trial:
    if not trial.old and trial.stack[: len(landed)] == landed:
        return replace(trial, stack=trial.stack[len(landed) :])
    left = tuple(change for change in trial.stack if change not in landed)
    return replace(trial, stack=left, old=True, mixed=trial.mixed or left != trial.stack)


def forget(trials: Iterable[Trial], gone: Collection[str]) -> tuple[Trial, ...]:
    """Trials without those of a change that has left the queue: it may have been the reason."""
    return tuple(trial for trial in trials if not set(gone).intersection(trial.stack))


def flakes(trials: Iterable[Trial], landed: Stack) -> int:
    """How many of these trials failed by chance, as the landing of this stack shows."""
    failed = [trial.stack for trial in trials if trial.verdict is TrialVerdict.FAILED and not trial.old]
    return sum(stack == landed[: len(stack)] for stack in failed)


def measure(*, landed: int, rejected: int, runs: int, flaked: int) -> Rates:
    """Estimate the rates from these numbers; without any, those of an ordinary project."""
    bad = (rejected + _BAD[0]) / (landed + rejected + _BAD[1])
    flaky = (flaked + _FLAKY[0]) / (runs + _FLAKY[1])
    return Rates(bad=bad, flaky=flaky, runs=runs, flaked=flaked)


def tries(retries: int, rates: Rates, failed: int) -> int:
    """How often a change that `failed` so often alone may do so: a failure tells less where checks fail by chance.

    Its own failures say nothing about how often they do.
    """
    often = rates.flaked / (_MORE + max(rates.flaked, rates.runs - failed))
    return 1 + retries + int(_TRIES * max(0.0, often - _USUAL))


def may_be_chance(rates: Rates, failed: int) -> bool:
    """Whether so many failures of one change may all be chance, for all that was seen."""
    often = (rates.flaked + _UNSEEN) / (_MORE + max(rates.flaked, rates.runs - failed))
    return bool(often**failed > _HARDLY)


def in_order(entries: Iterable[QueuedChange]) -> list[QueuedChange]:
    """Order the queue by rank and turn, with needs first. A circle of needs is broken at its first change."""
    ranked = sorted(entries, key=lambda entry: (-entry.rank, entry.turn, entry.change))
    places = {entry.change: place for place, entry in enumerate(ranked)}
    queue: dict[str, QueuedChange] = {}
    for entry in ranked:
        for need in _with_needs(entry, ranked, places, queue) if entry.needs else (entry,):
            queue.setdefault(need.change, need)
    return list(queue.values())


def _with_needs(
    first: QueuedChange, ranked: Sequence[QueuedChange], places: Mapping[str, int], queue: Container[str]
) -> Iterator[QueuedChange]:
    """A change and the changes that it needs and that are not in the queue yet, needs first."""
    path, seen = [first], {first.change}
    while path:
        needs = (need for need in path[-1].needs if need in places and need not in queue and need not in seen)
        place = min((places[need] for need in needs), default=None)
        if place is None:
            yield path.pop()
        else:
            path.append(ranked[place])
            seen.add(ranked[place].change)
