"""How long tests wait: deadlines are written as seconds on a quiet machine, and grow with how slow this machine is.

Whoever starts the suite measures once; a variable hands the result to xdist's workers and to processes of tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import TypeVar

T = TypeVar("T")

SLOWNESS = "WINDLASS_TEST_SLOWNESS"
"""How many times slower than a quiet machine this one is. Set it to wait longer than is measured."""
QUIET_START = 0.1
"""Seconds in which a quiet machine starts an interpreter and imports a little."""
LEAST, MOST = 2.0, 40.0
"""The suite has more workers than cores: it is never alone. And a test that hangs ends some day."""
TRIES = 5


def measure() -> float:
    """How many times slower than a quiet machine this one starts a process."""
    command = (sys.executable, "-I", "-c", "import asyncio")
    starts = []
    for _ in range(TRIES):
        began = time.monotonic()
        subprocess.run(command, check=True)
        starts.append(time.monotonic() - began)
    return min(max(LEAST, median(starts) / QUIET_START), MOST)


def slowness() -> float:
    """What was measured when the suite began."""
    return float(os.environ.get(SLOWNESS, LEAST))


def seconds(quiet: float) -> float:
    """A deadline for something that takes at most so many seconds on a quiet machine."""
    return quiet * slowness()


class Deadline:
    """A moment after which a test gives up. A machine that became slower meanwhile moves it."""

    def __init__(self, quiet: float) -> None:
        self._quiet = quiet
        self._slowness = slowness()
        self._began = time.monotonic()

    def passed(self) -> bool:
        """Whether time is up."""
        if time.monotonic() - self._began < self._quiet * self._slowness:
            return False
        before, self._slowness = self._slowness, max(self._slowness, measure())
        return self._slowness <= before


def until(look: Callable[[], T], what: str, *, within: float = 25.0, fails: bool = True, pause: float = 0.02) -> T:
    """Look again and again until there is something, and return it; give up after so many seconds, if it were quiet."""
    deadline = Deadline(within)
    while True:
        began = time.monotonic()
        if found := look():
            return found
        if deadline.passed():
            assert not fails, f"waited in vain for {what}, which takes less than {within} s on a quiet machine"
            return found
        time.sleep(max(pause, time.monotonic() - began))  # a look that is a command leaves room for others
