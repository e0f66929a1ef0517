"""What the planner of the gate looks at, and what it answers: changes in line, trials of stacks, and a plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

Stack = tuple[str, ...]
"""Changes on top of main, bottom first."""


class Verdict(StrEnum):
    PASSED = "passed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A change in line."""

    change: str
    turn: int
    """Its place: the lower, the sooner."""
    rank: int = 0
    """Goes before turns: the higher, the sooner."""
    needs: frozenset[str] = frozenset()
    """Changes that must be below it, or have landed; one that is not in line counts as landed."""
    proven: bool = False
    """A check of it passed, on its own tree or in a stack on an earlier main."""
    parts: frozenset[str] = frozenset()
    """The parts of the repository that it touches; nothing: it may touch any."""
    tries: int = 0
    """How often it failed alone on main."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One check of one stack on main."""

    stack: Stack
    verdict: Verdict | None = None
    """None while it is under way."""
    old: bool = False
    """Main has moved since it began: it still tells who is bad, but nothing lands on it."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How the gate is to work."""

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
    """What to do now."""

    land: Stack = ()
    """Main may move to this stack: it passed as it is."""
    reject: tuple[str, ...] = ()
    """They fail by themselves: back to their authors."""
    start: tuple[Stack, ...] = ()
    """Stacks to test now, the most wanted first; never more than there are free runners."""
    stop: tuple[Stack, ...] = ()
    """Stacks under test whose verdict nobody needs any more."""


def rebase(trials: Iterable[Trial], landed: Stack) -> tuple[Trial, ...]:
    """Trials as they count after this stack landed: what begins with it is the same tree still, the rest is old."""
    return tuple(kept for each in trials if (kept := _rebased(each, landed)).stack)


def _rebased(trial: Trial, landed: Stack) -> Trial:
    if trial.stack[: len(landed)] == landed:
        return replace(trial, stack=trial.stack[len(landed) :])
    return replace(trial, stack=tuple(each for each in trial.stack if each not in landed), old=True)


def in_order(entries: Sequence[Entry]) -> list[Entry]:
    """The line: by rank and turn, what is needed first. A circle of needs is broken at its first."""
    waiting = sorted(entries, key=lambda each: (-each.rank, each.turn, each.change))
    line: list[Entry] = []
    open_needs = {each.change for each in waiting}
    while waiting:
        free = next((each for each in waiting if each.needs.isdisjoint(open_needs - {each.change})), waiting[0])
        waiting.remove(free)
        open_needs.discard(free.change)
        line.append(free)
    return line
