"""The bell: rung after each commit, heard by every tick and every subscriber."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


class Bell:
    """Wakes whoever listens. A ring carries nothing: the facts are in the store."""

    def __init__(self) -> None:
        # Dictionaries and not sets, so that listeners are woken in the order in which they came.
        self._ears: weakref.WeakKeyDictionary[asyncio.Event, None] = weakref.WeakKeyDictionary()
        self._readers: weakref.WeakKeyDictionary[asyncio.Event, None] = weakref.WeakKeyDictionary()
        self._alarm: asyncio.TimerHandle | None = None
        self.silent = False
        """No ring will follow: whoever waits for one may go."""

    def ear(self, *, output: bool = False) -> asyncio.Event:
        """An event that is set by every ring; its owner clears it before looking. With `output`, by every hum, too."""
        ear = asyncio.Event()
        (self._readers if output else self._ears)[ear] = None
        return ear

    async def rings(self, *, output: bool = False, every: float | None = None) -> AsyncIterator[None]:
        """Now, and after each ring (with `output`, also each hum) or `every` so many seconds, to the last ring."""
        ear = self.ear(output=output)
        while True:
            ear.clear()  # before the caller looks, so that a ring during the look is not lost
            yield
            if self.silent:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(every):
                    await ear.wait()

    async def until(self, look: Callable[[], Awaitable[T]], found: Callable[[T], object], *, patience: float) -> T:
        """Look now and after each ring, until a look has `found` something; the last look, when the time is over."""
        ear = self.ear()
        seen = await look()  # also for a caller without any patience
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while not found(seen) and not self.silent:
                    await ear.wait()
                    ear.clear()
                    seen = await look()
        return seen

    @property
    def followed(self) -> bool:
        """Whether someone reads along."""
        return bool(self._readers)

    def ring(self) -> None:
        """Something has changed."""
        for ear in [*self._readers, *self._ears]:  # who reads along is told before our own ticks go to work
            ear.set()

    async def ring_after(self, step: Awaitable[T]) -> T:
        """Ring once a step is committed. Returns what the step returns; one that fails does not ring."""
        result = await step
        self.ring()
        return result

    def hum(self) -> None:
        """An agent has said something: of interest to those who read along, and to no tick."""
        for ear in list(self._readers):
            ear.set()

    def ring_in(self, seconds: float) -> None:
        """Ring when this much time has passed; of several wishes, the earliest is kept, and the rest ask again."""
        loop = asyncio.get_running_loop()
        at = loop.time() + max(0.0, seconds)
        if self._alarm and self._alarm.when() <= at:
            return  # also where it is due by now: a busy loop has only not come to it yet
        if self._alarm:
            self._alarm.cancel()
        self._alarm = loop.call_at(at, self._sound)

    def _sound(self) -> None:
        self._alarm = None
        self.ring()

    def fall_silent(self) -> None:
        """Ring a last time, because we are leaving."""
        self.silent = True
        self.ring()
