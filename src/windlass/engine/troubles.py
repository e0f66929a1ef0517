"""What went wrong unexpectedly: kept for `doctor`, and said loudly."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

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
        self._known[key] = replace(known, at=now, times=known.times + 1) if known else Trouble(tick, message, now)
        log.error("%s: %s", tick, message, exc_info=error)

    def all(self) -> list[Trouble]:
        return sorted(self._known.values(), key=lambda each: each.at)
