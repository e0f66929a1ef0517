"""An event loop without a world: no descriptors, no threads, and time that passes only when nothing else can happen."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

START = 1_000_000.0


class Stuck(AssertionError):
    """Everyone waits for someone else."""


class SimLoop(asyncio.BaseEventLoop):
    """The same work in the same order, whenever it is run."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = self
        self._ready: deque[Any]  # as the loop itself keeps it
        self._now = 0.0
        self._begun: list[asyncio.Task[Any]] = []
        self.set_task_factory(self._make)

    def tasks(self) -> list[asyncio.Task[Any]]:
        """What is under way, in the order in which it was begun."""
        self._begun = [each for each in self._begun if not each.done()]
        return self._begun

    def _make(self, loop: asyncio.AbstractEventLoop, work: Any, **named: Any) -> asyncio.Task[Any]:
        made: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **named)
        self._begun.append(made)
        return made

    def time(self) -> float:
        return self._now

    @property
    def idle(self) -> bool:
        """Whether nobody has anything to do before some time has passed."""
        return not self._ready

    def select(self, timeout: float | None) -> list[Any]:
        """Asked by the loop when it has looked at all that is ready: the time until the next timer passes at once."""
        if timeout is None:
            raise Stuck("nothing is left that could happen")
        self._now += timeout
        return []

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        """There is no other thread: do it here and now."""
        del executor
        done: asyncio.Future[T] = self.create_future()
        done.set_result(func(*args))
        return done

    def _process_events(self, event_list: list[Any]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nobody wakes us from outside."""


class SimClock:
    """The loop's time; what people call the time can be put forward and back."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self.skew = 0.0

    def now(self) -> float:
        return START + self._loop.time() + self.skew

    def monotonic(self) -> float:
        return self._loop.time()
