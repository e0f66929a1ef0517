"""Unexpected errors of ticks: kept for `doctor`, written into the log and, once, into the journal."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from windlass.core.errors import Conflict, WindlassError
from windlass.core.ports import Clock
from windlass.core.ports.store import Store, Writing
from windlass.engine.bell import Bell

log = logging.getLogger("windlass")

QUIET = 150.0
"""Seconds after which a trouble that was not met again is over: whatever fails is tried every minute or so."""


@dataclass(frozen=True, slots=True)
class DaemonTrouble:
    tick: str
    message: str
    at: float
    times: int = 1
    hint: str = ""


class Troubles:
    """The troubles of this daemon's life, each sentence once. A tick reports here and goes on."""

    def __init__(self, clock: Clock, bell: Bell) -> None:
        self.clock = clock
        self.bell = bell
        self._known: dict[str, DaemonTrouble] = {}
        self._untold: dict[str, DaemonTrouble] = {}

    def report(self, tick: str, error: BaseException) -> None:
        """Keep it and log it; a traceback only of what nobody expected."""
        expected = isinstance(error, WindlassError)
        message = str(error) if expected else f"{type(error).__name__}: {error}"
        known, now = self._known.get(message), self.clock.now()
        if known is None or now - known.at > QUIET:
            trouble = DaemonTrouble(tick, message, now, hint=getattr(error, "hint", ""))
            self._untold[message] = trouble
            self.bell.ring()  # so that it is told
        else:
            trouble = replace(known, at=now, times=known.times + 1)
        self._known[message] = trouble
        if trouble.times & (trouble.times - 1) == 0:  # the first time, then ever more rarely
            log.error("%s: %s (%d times)", trouble.tick, message, trouble.times, exc_info=None if expected else error)

    async def tell(self, store: Store) -> None:
        """Write new troubles into the journal; where that is impossible, they are told when it is possible again."""
        untold, self._untold = self._untold, {}
        if not untold:
            return
        try:
            await store.write(lambda writing: _record(writing, untold))
        except WindlassError:
            self._untold = untold | self._untold
            raise
        self.bell.ring()

    def over(self) -> None:
        """Ring the bell after a success: perhaps the untold troubles can be recorded now."""
        if self._untold:
            self.bell.ring()

    @contextmanager
    def noted(self, tick: str) -> Iterator[None]:
        """One row's trouble is kept, and the tick goes on with the next. A conflict means: someone else was faster."""
        try:
            yield
        except Conflict:
            return
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one project or agent, the others go on
            self.report(tick, error)

    def all(self) -> list[DaemonTrouble]:
        """All of them, the newest last."""
        return sorted(self._known.values(), key=lambda trouble: trouble.at)

    def present(self) -> list[DaemonTrouble]:
        """Those that are not over."""
        return [trouble for trouble in self.all() if self.clock.now() - trouble.at <= QUIET]


def _record(store: Writing, untold: dict[str, DaemonTrouble]) -> None:
    for trouble in untold.values():
        store.record("daemon.troubled", trouble.tick, message=trouble.message, hint=trouble.hint, since=trouble.at)
