"""One after the other: what one client changes happens in the order in which it said so."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from windlass.cli.mcp_bridge.protocol import Message


class Turns(threading.Thread):
    """Does with each message what is to be done, and begins with none before the one before it is done."""

    def __init__(self, do: Callable[[Message, float], None]) -> None:
        super().__init__(daemon=True)
        self._do = do
        self._waiting: deque[tuple[Message, float]] = deque()
        self._begun: Message | None = None
        """What is being done."""
        self._until = 0.0
        """When the time of the last one is over."""
        self._news = threading.Condition()
        self._is_over = False

    def add(self, message: Message, until: float) -> None:
        """The last in the line. `until` is how long it may take: its time runs while it waits for its turn."""
        with self._news:
            self._waiting.append((message, until))
            self._until = until
            self._news.notify()

    def drop(self, key: object) -> bool:
        """Take out the message with this id, if its turn has not come."""
        with self._news:
            left = deque(each for each in self._waiting if each[0].get("id") != key)
            found = len(left) < len(self._waiting)
            self._waiting = left
        return found

    def finish(self, seconds: float) -> list[Message]:
        """No more will come. What is not done when all had their time, and then none was done for so long, is left."""
        with self._news:
            self._is_over = True
            self._news.notify()
        left = -1
        while self.is_alive() and (left != len(self._waiting) or time.monotonic() < self._until):
            left = len(self._waiting)
            self.join(seconds)
        return self._left()

    def _left(self) -> list[Message]:
        """What was not done, beginning with what may have been; none of it will be begun any more."""
        with self._news:
            left = [self._begun] if self._begun else []
            left += [message for message, _ in self._waiting]
            self._waiting.clear()
        return left

    def run(self) -> None:
        while turn := self._next():
            self._do(*turn)

    def _next(self) -> tuple[Message, float] | None:
        with self._news:
            self._begun = None
            self._news.wait_for(lambda: self._waiting or self._is_over)
            turn = self._waiting.popleft() if self._waiting else None
            self._begun = turn[0] if turn else None
        return turn
