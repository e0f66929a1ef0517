"""A daemon that takes connections and answers nobody: notice it, and say what to do. Only a long wait imports this."""

from __future__ import annotations

import os
import struct
from _socket import MSG_DONTWAIT, MSG_PEEK, SO_PEERCRED, SOL_SOCKET, socket
from contextlib import suppress

from windlass.cli.connection.http import Frozen, dial
from windlass.core.display import age

_FIRST, _LONGEST_PAUSE = 1.0, 30.0
"""Seconds without an answer after which the daemon is asked something easy, and until it is asked again."""
_STOPPED, _SILENT = 5.0, 30.0
"""Seconds that one gets to go on: stopped by a signal or a debugger, or silent for a reason that we can't see."""
_EASY = b"GET /status HTTP/1.1\r\nHost: windlass\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_CREDENTIALS = struct.Struct("3i")
_STATES = {
    "T": "it is stopped",
    "t": "a debugger holds it",
    "D": "it waits for a disk",
    "R": "it is busy",
    "S": "it sleeps",
}


class FrozenWatch:
    """Asks the daemon something easy beside a request that takes long: only one that leaves that unanswered, too, is
    frozen."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._easy: socket | None = None
        self._next = _FIRST
        self._told = False

    def look(self, waited: float) -> Frozen | None:
        """What to tell whoever has waited so many seconds; nothing while the daemon answers others, and only once."""
        if self._told or waited < _FIRST:
            return None
        if self._easy is None:
            if waited >= self._next or waited < 2 * _FIRST:  # a new wait begins at the first second again
                self._easy = _asked(self._home)
            return None
        answered = _has_answered(self._easy)
        pid = peer(self._easy)
        self._easy.close()
        self._easy, self._next = None, waited + min(waited, _LONGEST_PAUSE)
        self._told = not answered
        return None if answered else describe(pid, waited)


def describe(pid: int, waited: float) -> Frozen:
    """One sentence about a daemon that does not answer, and what to do; agents can't see its process."""
    state, seconds = process(pid)
    who = f"the daemon (pid {pid}, up {age(seconds)})" if state else "the daemon"
    why = f": {_STATES.get(state, 'it is in a state of its own')} (state {state})" if state else ""
    told = f"windlass: {who} took the connection {age(waited)} ago and answers nobody{why}. Still waiting."
    within = _STOPPED if state in ("T", "t") else _SILENT
    if os.environ.get("WINDLASS_RUN") or not state:
        return Frozen(told, "A person can wake or end it.", within)
    wake = f"`kill -CONT {pid}` lets it go on. " if state == "T" else "`windlass daemon logs` may say why. "
    end = "`windlass daemon stop --force` ends it; agents go on, and the next command starts it again."
    return Frozen(told, wake + end, within)


def process(pid: int) -> tuple[str, float]:
    """The state of a process, one letter, and the seconds that it has run; no state if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - pathlib is slow
            facts = file.read().rpartition(")")[2].split()
        with open("/proc/uptime", encoding="ascii") as file:  # noqa: PTH123 - pathlib is slow here
            up = float(file.read().split()[0])
    except (FileNotFoundError, ProcessLookupError):
        return "", 0.0
    return facts[0], up - int(facts[19]) / os.sysconf("SC_CLK_TCK")


def peer(connected: socket) -> int:
    """The process that listens at the other end; 0 if we can't see it, as in a sandbox."""
    pid: int = _CREDENTIALS.unpack(connected.getsockopt(SOL_SOCKET, SO_PEERCRED, _CREDENTIALS.size))[0]
    return pid


def _asked(home: str) -> socket | None:
    try:
        easy = dial(home)
    except OSError:
        return None
    with suppress(OSError):  # one that has hung up: that is an answer, too
        easy.send(_EASY)
    return easy


def _has_answered(easy: socket) -> bool:
    """Whether anything came, or the daemon hung up: neither is done by one that is frozen."""
    try:
        easy.recv(1, MSG_DONTWAIT | MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
