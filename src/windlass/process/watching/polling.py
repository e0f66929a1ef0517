"""Looking again and again: only where the kernel can't tell us."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

EVERY = 0.1


def poll(look: Callable[[], object], changed: Callable[[], None], *, seen: object) -> Callable[[], None]:
    """Call `changed` whenever `look` answers differently, first than `seen`. Returns what ends it."""
    return _Poll(look, changed, seen).end


class _Poll:
    def __init__(self, look: Callable[[], object], changed: Callable[[], None], seen: object) -> None:
        self._look, self._changed = look, changed
        self._loop = asyncio.get_running_loop()
        self._seen = seen
        self._timer = self._loop.call_later(EVERY, self._again)

    def _again(self) -> None:
        self._timer = self._loop.call_later(EVERY, self._again)  # first, so that `changed` may end it
        before, self._seen = self._seen, self._look()
        if self._seen != before:
            self._changed()

    def end(self) -> None:
        self._timer.cancel()
