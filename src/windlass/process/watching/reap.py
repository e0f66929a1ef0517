"""Our own children: they are reaped, so that no zombie stays."""

from __future__ import annotations

import os


class Children:
    """Those we have started and not yet reaped. We never wait for a child that someone else started."""

    def __init__(self) -> None:
        self._pids: set[int] = set()

    def add(self, pid: int) -> None:
        self._pids.add(pid)

    def reap(self) -> None:
        """Take leave of all that have ended."""
        for pid in tuple(self._pids):
            if _has_ended(pid):
                self._pids.discard(pid)


def _has_ended(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True
