"""One after the other: what one client changes happens in the order in which it said so."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from windlass.cli.mcp_messages import Message


class Turns(threading.Thread):
    """Does with each message what is to be done, and begins with none before the one before it is done."""

    def __init__(self, do: Callable[[Message, float], None]) -> None:
        super().__init__(daemon=True)
        self._do = do
        self._waiting: deque[tuple[Message, float]] = deque()
        self._news = threading.Condition()
        self._is_over = False

    def add(self, message: Message, until: float) -> None:
        """The last in the line. `until` is how long it may take: its time runs while it waits for its turn."""
        with self._news:
            self._waiting.append((message, until))
            self._news.notify()

    def drop(self, key: object) -> bool:
        """Take out the message with this id, if its turn has not come."""
        with self._news:
            left = deque(each for each in self._waiting if each[0].get("id") != key)
            found = len(left) < len(self._waiting)
            self._waiting = left
        return found

    def finish(self, seconds: float) -> None:
        """No more will come: return when all is done, or when none has been done for so long."""
        with self._news:
            self._is_over = True
            self._news.notify()
        left = -1
        while self.is_alive() and left != len(self._waiting):
            left = len(self._waiting)
            self.join(seconds)

    def run(self) -> None:
        while turn := self._next():
            self._do(*turn)

    def _next(self) -> tuple[Message, float] | None:
        with self._news:
            self._news.wait_for(lambda: self._waiting or self._is_over)
            return self._waiting.popleft() if self._waiting else None
