"""Ours beside a floor, in the same run: what counts is the ratio of the medians."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass

Timed = Callable[[], float]
"""Does the thing once, and returns what it took."""


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the table."""

    name: str
    what: str
    unit: str
    ours: float
    floor: float
    goal: float
    """The ratio to the floor that we want to stay under."""

    @property
    def ratio(self) -> float:
        return self.ours / self.floor

    @property
    def met(self) -> bool:
        return self.ratio <= self.goal


def interleaved(ours: Timed, floor: Timed, *, rounds: int) -> tuple[float, float]:
    """Medians of both, taken turn by turn, so that the machine's moods fall on both."""
    pairs = [(floor(), ours()) for _ in range(rounds)]
    return statistics.median(pair[1] for pair in pairs), statistics.median(pair[0] for pair in pairs)
