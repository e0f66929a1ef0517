"""Ours beside a floor, in the same run: what counts is the ratio of the medians."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Timed = Callable[[], float]
"""Does the thing once, and returns what it took."""


class CannotRun(Exception):
    """A benchmark lacks something here; the words say what, for its line of the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One line of the table. Without a floor, `ours` itself is held against the goal."""

    name: str
    what: str
    unit: str
    ours: float
    floor: float | None = None
    goal: float
    """The ratio to the floor that we want to stay under, or the value where there is no floor."""
    at_least: bool = False
    """The goal is to be reached, and not to be stayed under: throughput."""

    @property
    def ratio(self) -> float | None:
        return None if self.floor is None else self.ours / self.floor

    @property
    def excess(self) -> float:
        """How far from the goal: 1 is just met, 2 is twice as much as it may be."""
        value = self.ours if self.ratio is None else self.ratio
        if self.at_least:
            return self.goal / max(value, 1e-9)
        return value / self.goal if self.goal else float(value > 0) * 1000

    @property
    def met(self) -> bool:
        return self.excess <= 1


def interleaved(ours: Timed, floor: Timed, *, rounds: int) -> tuple[float, float]:
    """Medians of both, taken turn by turn, so that the machine's moods fall on both."""
    pairs = [(floor(), ours()) for _ in range(rounds)]
    return statistics.median(pair[1] for pair in pairs), statistics.median(pair[0] for pair in pairs)


def percentile(samples: Sequence[float], share: float) -> float:
    """The value that this share of the samples stays under."""
    return sorted(samples)[min(int(len(samples) * share), len(samples) - 1)]
