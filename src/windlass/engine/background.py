"""Work that runs beside a tick: at most one piece per key."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable

from windlass.engine.troubles import Troubles

Work = Callable[[], Awaitable[object]]
Moves = defaultdict[str, asyncio.Lock]
"""By project: held by whoever moves main, or says that it must not move."""

Seats = defaultdict[str, asyncio.Lock]
"""By agent: held by whoever makes its worktree ready, or takes it away."""

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 60.0
"""Seconds before what failed again and again is tried once more."""


class Background:
    """Keeps slow work (a start, a look at a tree, checks) from delaying the tick that began it."""

    def __init__(self, name: str, troubles: Troubles, *, at_once: int) -> None:
        self.name = name
        self.troubles = troubles
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._again: dict[str, Work] = {}
        self._turns = asyncio.Semaphore(at_once)
        self._failures: Counter[str] = Counter()
        self._closed = False

    def begin(self, key: str, work: Work) -> None:
        """Start this work; where some is under way for the key, do it once more after that."""
        if self._closed:
            return
        if key in self._tasks:
            self._again[key] = work
            return
        self._tasks[key] = task = asyncio.create_task(self._carry(key, work), name=f"{self.name} {key}")
        task.add_done_callback(lambda _: self._over(key))

    def stop(self, key: str) -> None:
        """Break off the work for this key."""
        if task := self._tasks.get(key):
            task.cancel()

    @property
    def active(self) -> bool:
        return bool(self._tasks)

    @property
    def alone(self) -> bool:
        """Whether whoever asks, from within a piece of work, is the only one under way."""
        return len(self._tasks) == 1

    def busy(self, key: str) -> bool:
        return key in self._tasks

    async def settle(self) -> None:
        """Wait until all that was begun has ended."""
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def close(self) -> None:
        """Break off what is under way; every step of it can be repeated."""
        self._closed = True
        for task in list(self._tasks.values()):
            task.cancel()
        await self.settle()

    async def _carry(self, key: str, work: Work) -> None:
        try:
            async with self._turns:
                await work()
            if self._failures.pop(key, None):
                self.troubles.over()
        except Exception as error:  # noqa: BLE001 - one piece of work must never take the others down
            self.troubles.report(self.name, error)
            self._failures[key] += 1
            await asyncio.sleep(min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** self._failures[key]))

    def _over(self, key: str) -> None:
        """Said by the task itself, because one that is broken off before its first turn does nothing at all."""
        self._tasks.pop(key, None)
        if again := self._again.pop(key, None):
            self.begin(key, again)
