"""The long matrices: each day plays a small part of each, another one every day; `scripts/test --long` plays all."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TypeVar

T = TypeVar("T")

LONG = "WINDLASS_TEST_LONG"
"""Set to `yes` by `scripts/test --long`."""
DAY = "WINDLASS_TEST_DAY"
"""The day whose sample is played, such as 2026-11-17: today, unless whoever runs the tests says another one."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Cases that are cut into parts, one of which is played a day."""

    name: str
    parts: int

    def part(self, day: date) -> int:
        """The part of a day: each part has its turn once in as many days as there are parts, in changing order."""
        rounds, place = divmod(day.toordinal(), self.parts)
        order = random.Random(f"{self.name} {rounds}").sample(range(self.parts), self.parts)
        return order[place]

    def of(self, cases: Sequence[T], day: date | None = None) -> list[T]:
        """The cases of a day, one at least; all of them in a long run."""
        if long():
            return list(cases)
        part = self.part(day or today())
        return list(cases[part :: self.parts]) or [cases[part % len(cases)]]


HISTORIES = Matrix("histories", 10)
"""Of the engine's simulation."""
MUTANTS = Matrix("mutants", 6)
"""Engines that are broken on purpose, and must be found out."""
CRASH_POINTS = Matrix("crash points", 24)
"""Steps at which the daemon is killed."""
VOICES = Matrix("voices", 5)
"""How many agents talk at once, and how often the daemon dies meanwhile."""
BROKEN_FILES = Matrix("broken files", 4)
"""Scripts, bodies and settings made to hurt, through the CLI and the socket."""
GATE_HISTORIES = Matrix("gate histories", 20)
"""Of the gate with real git and real checks."""
WORLDS = Matrix("worlds of the gate", 66)
"""Of the gate's planner."""
THIRTY_AGENTS = Matrix("thirty agents", 2)
"""With one runner or two."""
IDENTITIES = Matrix("identities", 400)
"""Trees of processes that call the daemon's socket."""
ALL = (HISTORIES, MUTANTS, CRASH_POINTS, VOICES, BROKEN_FILES, GATE_HISTORIES, WORLDS, THIRTY_AGENTS, IDENTITIES)


def long() -> bool:
    """Whether everything is played."""
    return os.environ.get(LONG, "") == "yes"


def today() -> date:
    """The day that counts: one for the whole run, also past midnight."""
    return date.fromisoformat(os.environ.setdefault(DAY, datetime.now(UTC).date().isoformat()))


def described() -> str:
    """One line for people: which parts are played, and how to play them again."""
    if long():
        return "long run: every case of every matrix"
    day = today()
    parts = ", ".join(f"{matrix.name} {matrix.part(day) + 1}/{matrix.parts}" for matrix in ALL)
    return f"sample of {day}: {parts} ({DAY}={day} repeats it, --long plays all)"
