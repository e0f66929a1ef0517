"""The bell: it wakes every tick and every subscriber that an event is for, once the event is stored."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import TypeVar

from windlass.core.nouns.event import Event, heard_as

T = TypeVar("T")

OUTPUT = "run.output"
"""Of interest to those who read along, and to no tick."""


class Bell:
    """Wakes whoever listens. It carries nothing: the facts are in the store."""

    def __init__(self) -> None:
        # Dictionaries and not sets, so that listeners are woken in the order in which they came.
        self._ears: weakref.WeakKeyDictionary[asyncio.Event, tuple[str, ...]] = weakref.WeakKeyDictionary()
        self._readers: weakref.WeakKeyDictionary[asyncio.Event, None] = weakref.WeakKeyDictionary()
        self._alarm: asyncio.TimerHandle | None = None
        self.silent = False
        """No ring will follow: whoever waits for one may go."""

    def ear(self, *kinds: str, output: bool = False) -> asyncio.Event:
        """An event that is set by every ring, and by stored events whose kind begins like one of these.

        Its owner clears it before looking. Without kinds it hears of all but output; with `output`, of that, too."""
        ear = asyncio.Event()
        if output:
            self._readers[ear] = None
        else:
            self._ears[ear] = kinds
        return ear

    def leave(self, ear: asyncio.Event) -> None:
        """Nobody listens with this ear any more. One that is only forgotten may count for a while."""
        self._readers.pop(ear, None)
        self._ears.pop(ear, None)

    async def rings(self, *, output: bool = False, every: float | None = None) -> AsyncIterator[None]:
        """Now, and after each ring (with `output`, also output) or `every` so many seconds, to the last ring."""
        ear = self.ear(output=output)
        try:
            while True:
                ear.clear()  # before the caller looks, so that a ring during the look is not lost
                yield
                if self.silent:
                    return
                with suppress(TimeoutError):
                    async with asyncio.timeout(every):
                        await ear.wait()
        finally:
            self.leave(ear)

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

    def hear(self, events: Sequence[Event]) -> None:
        """Wake those for whom one of these events is; the store calls this after each transaction."""
        heard = {heard_as(event) for event in events}
        _wake(self._readers)
        if heard != {OUTPUT}:
            _wake(
                ear for ear, kinds in self._ears.items() if not kinds or any(word.startswith(kinds) for word in heard)
            )

    def ring(self) -> None:
        """Wake everyone, for something that is no event."""
        _wake(self._readers)  # who reads along is told before our own ticks go to work
        _wake(self._ears)

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


def _wake(ears: Iterable[asyncio.Event]) -> None:
    for ear in list(ears):
        ear.set()
