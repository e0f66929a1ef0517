"""What went wrong unexpectedly: kept for `doctor`, and said loudly."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from windlass.core.errors import Conflict, WindlassError
from windlass.core.ports import Clock

log = logging.getLogger("windlass")


@dataclass(frozen=True, slots=True)
class Trouble:
    tick: str
    message: str
    at: float
    times: int = 1


class Troubles:
    """The newest trouble of each kind. A tick reports here and goes on."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._known: dict[tuple[str, str], Trouble] = {}

    def report(self, tick: str, error: BaseException) -> None:
        """Keep it and log it, with its traceback."""
        message = f"{type(error).__name__}: {error}"
        key = (tick, message)
        now = self.clock.now()
        known = self._known.get(key)
        trouble = replace(known, at=now, times=known.times + 1) if known else Trouble(tick, message, now)
        self._known[key] = trouble
        if trouble.times & (trouble.times - 1) == 0:  # the first time, then ever more rarely
            log.error("%s: %s (%d times)", tick, message, trouble.times, exc_info=error)

    @contextmanager
    def noted(self, tick: str) -> Iterator[None]:
        """One row's trouble is kept, and the tick goes on with the next. A conflict means: someone else was faster."""
        try:
            yield
        except Conflict:
            return
        except WindlassError as error:
            self.report(tick, error)

    def all(self) -> list[Trouble]:
        return sorted(self._known.values(), key=lambda each: each.at)
