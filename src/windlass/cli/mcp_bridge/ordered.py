"""Requests that change something, one after the other, in the order in which the client sent them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from windlass.cli.mcp_bridge.protocol import Message


class Turns(threading.Thread):
    """A thread that forwards messages one by one: each begins when the one before it is done."""

    def __init__(self, do: Callable[[Message, float], None]) -> None:
        super().__init__(daemon=True)
        self._do = do
        self._waiting: deque[tuple[Message, float]] = deque()
        self._begun: Message | None = None
        """The message that is being forwarded."""
        self._until = 0.0
        """The deadline of the last message."""
        self._news = threading.Condition()
        self._is_over = False

    def add(self, message: Message, until: float) -> None:
        """Append a message. `until` is its deadline, which includes the time that it waits for its turn."""
        with self._news:
            self._waiting.append((message, until))
            self._until = until
            self._news.notify()

    def drop(self, key: object) -> bool:
        """Remove the message with this id; False if its turn has come already."""
        with self._news:
            left = deque(turn for turn in self._waiting if turn[0].get("id") != key)
            found = len(left) < len(self._waiting)
            self._waiting = left
        return found

    def finish(self, seconds: float) -> list[Message]:
        """Let the rest finish, until all deadlines are over and none was done for `seconds`; return those left over."""
        with self._news:
            self._is_over = True
            self._news.notify()
        left = -1
        while self.is_alive() and (left != len(self._waiting) or time.monotonic() < self._until):
            left = len(self._waiting)
            self.join(seconds)
        with self._news:  # the first one may have been done
            unsent = [*([self._begun] if self._begun else []), *(message for message, _ in self._waiting)]
            self._waiting.clear()
        return unsent

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
