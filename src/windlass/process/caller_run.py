"""Say who is at the other end of a connection: a run, or the person. The kernel and our own records say so."""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from windlass.core.errors import NotAllowed
from windlass.core.nouns.run import Identity
from windlass.process.proc import Process, identify, process, stamp_of
from windlass.process.stamp import own_stamp

_TRIES = 5
_PEERPIDFD = 77
"""SO_PEERPIDFD, since Linux 6.5: the very process that connected, also when its pid is another's by now."""
_CREDENTIALS = struct.Struct("3i")


class CallerTrace:
    """Traces the process that made a connection to the run whose first process it descends from."""

    def __init__(self, leaders: Mapping[Identity, str]) -> None:
        self._leaders = leaders

    def identify(self, connection: socket.socket) -> str:
        """The run that has connected; nothing for the person. Asked once, when the connection is made.

        Raises NotAllowed for another user, and for a process that has gone or that nobody can place.
        """
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, uid, _ = _CREDENTIALS.unpack(credentials)
        if uid != os.getuid():
            raise NotAllowed(f"This daemon belongs to another user (uid {os.getuid()}).")
        with _pinned(connection, pid) as has_ended:
            return self.trace(pid, has_ended)

    def trace(self, pid: int, has_ended: Callable[[], bool]) -> str:
        """The run that a process belongs to; nothing for the person's. Raises NotAllowed as `identify` does."""
        for _ in range(_TRIES):
            line, stamp = _line(pid), stamp_of(pid)
            if line and line == _line(pid) and not has_ended():  # so all of it was true at one moment
                return self._run_of(line, stamp)
        raise _gone(pid)

    def _run_of(self, line: list[Process], stamp: int) -> str:
        leaders = dict(self._leaders)
        for member in reversed(line):
            if run := leaders.get(member.identity):
                return run
        ours = any(member.pid == os.getpid() for member in line[1:])
        if ours or stamp < own_stamp() or _in_session_of(leaders, line):
            raise NotAllowed(
                f"The calling process {line[0].pid} was started by a run or a check, and belongs to no run now.",
                hint="Call from a terminal of your own, or from a process that a live run has started.",
            )
        return ""


def can_pin_callers() -> bool:
    """Whether this kernel holds a caller's very process (SO_PEERPIDFD)."""
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        try:
            os.close(_peer(ours))
        except OSError as error:
            return error.errno != errno.ENOPROTOOPT
    return True


def _peer(connection: socket.socket) -> int:
    """A descriptor of the process that connected."""
    return int(struct.unpack("i", connection.getsockopt(socket.SOL_SOCKET, _PEERPIDFD, 4))[0])


@contextmanager
def _pinned(connection: socket.socket, pid: int) -> Iterator[Callable[[], bool]]:
    """Says whether the process that connected has ended: then another may have its pid.

    A kernel that is too old for that says nothing: who has the pid by now is taken for the one that connected.
    """
    try:
        descriptor = _peer(connection)
    except OSError as error:
        if error.errno != errno.ENOPROTOOPT:
            raise _gone(pid) from error
        yield lambda: False
        return
    ended = select.poll()
    ended.register(descriptor, select.POLLIN)
    try:
        yield lambda: bool(ended.poll(0))
    finally:
        os.close(descriptor)


def _line(pid: int) -> list[Process]:
    """A process and its ancestors, up to the first; nothing if it, or one of them, has gone meanwhile."""
    line: list[Process] = []
    while pid > 0 and all(member.pid != pid for member in line):
        found = process(pid)
        if found is None or (found.gone and not line):
            return []
        line.append(found)
        pid = found.parent
    return line


def _in_session_of(leaders: Iterable[Identity], line: list[Process]) -> bool:
    """Whether one of these is in a session that a run began.

    The kernel gives away no pid while a session has its number. So where a stranger has a leader's pid, the run's
    session is over, and the one with that number is the stranger's.
    """
    sessions = {member.session for member in line}
    began = [leader for leader in leaders if leader.pid in sessions]
    return any(identify(leader.pid) in (leader, None) for leader in began)


def _gone(pid: int) -> NotAllowed:
    return NotAllowed(
        f"The calling process {pid} has gone, so nobody can tell whom it belonged to.",
        hint="Run the command again, and keep its process until the answer is there.",
    )
