"""The real time."""

from __future__ import annotations

import time


class SystemClock:
    """Wall time for people, monotonic time for measuring."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()
