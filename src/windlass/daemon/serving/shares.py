"""Shares of the daemon's connections: each run has one, and all runs together leave a reserve for people."""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Callable

from windlass.core.errors import Unavailable

MOST_FILES = 65_536
"""Files that we open at once, where the system allows that many: we need no more."""
MOST_CALLERS = 4000
MOST_OF_A_RUN = 64
PERSON = ""
UNKNOWN = "unknown"
"""Holds the connections whose caller is not known, or not yet: on the port, the first request brings its token."""

Drop = Callable[[], None]
"""Closes a connection."""


def raise_file_limit() -> int:
    """Let this process open as many files as it may. Returns how many it might before: programs we start get those."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return soft


def most_callers() -> int:
    """The limit of connections: half of our descriptors are for agents, git and the store."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST_CALLERS if files == resource.RLIM_INFINITY else min(MOST_CALLERS, files // 2)


class Shares:
    """Counts connections by who holds them: a run by its id, the person by an empty one."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.reserve = most // 4
        """Connections that only people get."""
        self.of_a_run = min(MOST_OF_A_RUN, most // 4)
        self._held: Counter[str] = Counter()
        self._unknown: dict[Drop, None] = {}

    @property
    def held(self) -> int:
        """All that are held now."""
        return self._held.total()

    def take(self, holder: str, drop: Drop) -> None:
        """Count one more. Raises Unavailable for one too many; of the unknown, the oldest is closed instead."""
        if holder == UNKNOWN and len(self._unknown) >= self.of_a_run:
            next(iter(self._unknown))()
        if self.held >= (self.most if holder == PERSON else self.most - self.reserve):
            raise Unavailable("The daemon has as many callers as it can take.", hint="Try again later.")
        if holder not in (PERSON, UNKNOWN) and self._held[holder] >= self.of_a_run:
            raise Unavailable(
                f"This run has {self.of_a_run} connections already, as many as one may have.", hint="Close some first."
            )
        self._held[holder] += 1
        if holder == UNKNOWN:
            self._unknown[drop] = None

    def leave(self, holder: str, drop: Drop) -> None:
        """Count one less."""
        self._held[holder] -= 1
        if not self._held[holder]:
            del self._held[holder]
        self._unknown.pop(drop, None)
