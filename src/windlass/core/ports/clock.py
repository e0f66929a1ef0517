"""The time, as the engine asks for it."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """The time, twice: for people, and for measuring."""

    def now(self) -> float:
        """Seconds since 1970."""
        ...

    def monotonic(self) -> float:
        """Seconds that never jump."""
        ...
