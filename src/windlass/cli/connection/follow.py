"""Following something to its end, through daemons that go away and come again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from windlass.cli.connection.http import Gone, watch_outlet
from windlass.cli.output import Row

_TRIES = 5
"""How often a daemon may go away without a word in between."""
_RETRY_SECONDS = 0.1


def follow(ask: Callable[[], Iterable[Row]], is_over: Callable[[Row], bool]) -> Iterator[Row]:
    """Each view of it until one is the last; where the answer breaks off, a daemon is asked anew."""
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
        watch_outlet(_RETRY_SECONDS)
