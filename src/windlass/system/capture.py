"""Keeping the beginning and the end of an output of any length."""

from __future__ import annotations


class Capture:
    """Takes any number of bytes and keeps at most `limit`: the first third and the last two thirds."""

    def __init__(self, limit: int) -> None:
        self._head_room = limit // 3
        self._tail_room = limit - self._head_room
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    @property
    def left_out(self) -> int:
        """How many bytes will not be shown."""
        return max(self._total - self._head_room - self._tail_room, 0)

    def add(self, some: bytes) -> None:
        self._total += len(some)
        room = self._head_room - len(self._head)
        self._head += some[:room]
        self._tail += some[room:]
        if len(self._tail) > 2 * self._tail_room + (1 << 16):  # cut seldom: each cut moves what is kept
            self._cut()

    def kept(self) -> bytes:
        """What is left of it, with a line that says how much is not."""
        self._cut()
        gap = b"\n[... %d bytes left out ...]\n" % self.left_out if self.left_out else b""
        return bytes(self._head) + gap + bytes(self._tail)

    def _cut(self) -> None:
        del self._tail[: max(len(self._tail) - self._tail_room, 0)]
