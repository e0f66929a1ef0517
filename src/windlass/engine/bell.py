"""The bell: rung after each commit, heard by every tick and every subscriber."""

from __future__ import annotations

import asyncio
import weakref


class Bell:
    """Wakes whoever listens. A ring carries nothing: the facts are in the store."""

    def __init__(self) -> None:
        self._ears: weakref.WeakSet[asyncio.Event] = weakref.WeakSet()
        self.silent = False
        """No ring will follow: whoever waits for one may go."""

    def ear(self) -> asyncio.Event:
        """An event that is set by every ring; its owner clears it before looking."""
        ear = asyncio.Event()
        self._ears.add(ear)
        return ear

    def fall_silent(self) -> None:
        """Ring a last time, because we are leaving."""
        self.silent = True
        self.ring()

    def ring(self) -> None:
        for ear in list(self._ears):
            ear.set()
