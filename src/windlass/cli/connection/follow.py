"""Follow a task or an instance to its end, across restarts of the daemon."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from windlass.cli.connection.http import Gone, sleep_while_read
from windlass.cli.output import Row

_TRIES = 5
"""How often a daemon may go away without an answer in between."""
_RETRY_SECONDS = 0.1


def follow(ask: Callable[[], Iterable[Row]], is_over: Callable[[Row], bool]) -> Iterator[Row]:
    """Yield each view until one is the last; if the daemon goes away, ask the next one."""
    failures = 0
    while True:
        try:
            for view in ask():
                failures = 0
                yield view
                if is_over(view):
                    return
        except Gone:
            failures += 1
            if failures > _TRIES:
                raise
        sleep_while_read(_RETRY_SECONDS)
