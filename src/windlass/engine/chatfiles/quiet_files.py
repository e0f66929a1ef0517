"""When a file that others write has come to rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from windlass.core.ports import Clock

QUIET = 0.2
"""Seconds without a change, after which a text that someone writes counts as whole."""
FORGOTTEN = 60.0
"""Seconds after which a file that nobody asks about is forgotten: it may be gone."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """The digest of a file, since when it has this digest, and when someone last asked."""

    digest: str
    since: float
    asked: float


class QuietFiles:
    """Remembers since when each file has not changed."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._seen: dict[str, _Seen] = {}

    def is_quiet(self, key: str, digest: str, look_again: Callable[[], None], *, seconds: float = QUIET) -> bool:
        """Whether a file has had this digest for a moment; if not, `look_again` is called after that moment."""
        now = self.clock.monotonic()
        before = self._seen.get(key)
        since = before.since if before and before.digest == digest else now
        self._seen = {name: seen for name, seen in self._seen.items() if now - seen.asked < FORGOTTEN}
        self._seen[key] = _Seen(digest, since, now)
        if now - since >= seconds:
            return True
        asyncio.get_running_loop().call_later(seconds, look_again)
        return False
