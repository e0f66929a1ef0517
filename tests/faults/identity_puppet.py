"""A process that does what it is told over a line: it forks, hides, forges and calls, as an agent's programs may.

Run as `python -I -S identity_puppet.py PLACE`, where somebody listens, or with the number of a descriptor that is its
line. It imports nothing of ours, and ends when its line does. An order is a name, values and descriptors.
"""

from __future__ import annotations

import _thread
import ctypes
import errno
import marshal
import os
import platform
import resource
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

MOST_DESCRIPTORS = 4
LOCKS = 10
PR_SET_DUMPABLE, PR_SET_NAME, PR_SET_CHILD_SUBREAPER = 4, 15, 36
CLONE_PARENT = 0x8000
EXIT, CLONE = {"x86_64": (60, 56), "aarch64": (93, 220)}.get(platform.machine(), (0, 0))
"""Numbers of system calls: the end of one thread, and the fork that takes flags."""
HELLO: list[int] = []

libc = ctypes.CDLL(None, use_errno=True)
kept: list[socket.socket] = []
"""Connections that stay open here, and in all children."""


def main(where: str) -> None:
    """Take the line, and serve it."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are buried by the kernel
    if where.isdecimal():
        line = socket.socket(fileno=int(where))
    else:
        line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        line.connect(where)
    tell(line, HELLO)
    serve(line)


def serve(line: socket.socket) -> NoReturn:
    """Do one order after the other. What the kernel refuses is left undone."""
    while True:
        order, descriptors, _, _ = socket.recv_fds(line, 1 << 16, MOST_DESCRIPTORS)
        if not order:
            os._exit(0)
        name, values = marshal.loads(order)
        try:
            line = ORDERS[name](line, descriptors, *values)
        except OSError:
            if name not in FAMILIES:  # of a child that was not born nobody hears
                tell(line, HELLO)
        for descriptor in descriptors:
            with suppress(OSError):
                os.close(descriptor)


def tell(line: socket.socket, descriptors: list[int]) -> None:
    """Say that an order is done; the kernel adds our pid."""
    socket.send_fds(line, [b"done"], descriptors)


# ── families ─────────────────────────────────────────────────────────────────────────────────────────────────


def fork(line: socket.socket, given: list[int]) -> socket.socket:
    return line if os.fork() else _child(line, given)


def clone_beside(line: socket.socket, given: list[int]) -> socket.socket:
    """Have a brother instead of a child: its parent is our own."""
    pid = libc.syscall(CLONE, CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0) if CLONE else os.fork()
    if pid < 0:
        raise OSError(ctypes.get_errno(), "clone")
    return line if pid else _child(line, given)


def fork_twice(line: socket.socket, given: list[int], own_session: bool) -> socket.socket:
    """Have a grandchild whose parent ends at once."""
    if os.fork():
        return line
    if own_session:
        os.setsid()
    if os.fork():
        os._exit(0)
    return _child(line, given)


def flee(line: socket.socket, given: list[int], place: str, words: bytes, times: int) -> socket.socket:
    """Let a child call and go on in a child of its own, again and again, while each caller ends at once."""
    if os.fork():
        return line
    line = _take(line, given)
    for _ in range(times):
        with _connected(place, words) as connection:
            tell(line, [connection.fileno()])
        if os.fork():
            os._exit(0)
    tell(line, HELLO)
    return line


def _child(line: socket.socket, given: list[int]) -> socket.socket:
    line = _take(line, given)
    tell(line, HELLO)
    return line


def _take(line: socket.socket, given: list[int]) -> socket.socket:
    line.close()
    return socket.socket(fileno=given.pop(0))


# ── hiding ───────────────────────────────────────────────────────────────────────────────────────────────────


def own_session(line: socket.socket, given: list[int]) -> socket.socket:
    os.setsid()
    return _done(line)


def own_group(line: socket.socket, given: list[int]) -> socket.socket:
    os.setpgid(0, 0)
    return _done(line)


def be_called(line: socket.socket, given: list[int], name: bytes) -> socket.socket:
    libc.prctl(PR_SET_NAME, name, 0, 0, 0)
    return _done(line)


def be_dumpable(line: socket.socket, given: list[int], value: int) -> socket.socket:
    libc.prctl(PR_SET_DUMPABLE, value, 0, 0, 0)
    return _done(line)


def adopt_orphans(line: socket.socket, given: list[int], value: int) -> socket.socket:
    libc.prctl(PR_SET_CHILD_SUBREAPER, value, 0, 0, 0)
    return _done(line)


def set_stamp(line: socket.socket, given: list[int], stamp: int) -> socket.socket:
    with suppress(OSError, ValueError):
        resource.setrlimit(LOCKS, (stamp, stamp))
    return _done(line)


def leave_namespaces(line: socket.socket, given: list[int], flags: int) -> socket.socket:
    """The next child is the first process of a pid namespace, where we may have one."""
    libc.unshare(flags)
    return _done(line)


def lose_first_thread(line: socket.socket, given: list[int]) -> socket.socket:
    """Go on in a second thread; the first one ends, and the process looks like one that has ended."""
    if not EXIT:
        return _done(line)
    try:
        _thread.start_new_thread(lambda: serve(_done(line)), ())
    except RuntimeError as error:  # it has left its pid namespace
        raise OSError(errno.EAGAIN, "no second thread") from error
    libc.syscall(EXIT, 0)
    raise OSError(errno.EINVAL, "a thread that has ended goes on")


def become(line: socket.socket, given: list[int], environment: dict[str, str]) -> socket.socket:
    """Be the same program anew, with another environment. It says that it is there."""
    line.set_inheritable(True)
    os.execve(sys.executable, [sys.executable, "-I", "-S", __file__, str(line.fileno())], environment)


# ── calling ──────────────────────────────────────────────────────────────────────────────────────────────────


def open_socket(line: socket.socket, given: list[int]) -> socket.socket:
    """Make a socket that somebody else connects."""
    with socket.socket(socket.AF_UNIX) as made:
        tell(line, [made.fileno()])
    return line


def call(line: socket.socket, given: list[int], place: str, words: bytes, then: str) -> socket.socket:
    """Connect, with the given socket if there is one; hand the connection back; and `keep` it, `drop` it or `end`."""
    connection = _connected(place, words, given)
    tell(line, [connection.fileno()])
    if then == "end":
        os._exit(0)
    if then == "keep":
        kept.append(connection)
    else:
        connection.close()
    return line


def write(line: socket.socket, given: list[int], words: bytes) -> socket.socket:
    """Send a request on a connection that somebody else has made."""
    os.write(given[0], words)
    return _done(line)


def _connected(place: str, words: bytes, given: list[int] | None = None) -> socket.socket:
    connection = socket.socket(fileno=given.pop(0)) if given else socket.socket(socket.AF_UNIX)
    connection.connect(place)
    connection.sendall(words)
    return connection


def _done(line: socket.socket) -> socket.socket:
    tell(line, HELLO)
    return line


FAMILIES = ("fork", "clone_beside", "fork_twice", "flee")
"""Orders after which the child answers, on a line of its own."""
ORDERS: dict[str, Callable[..., Any]] = {
    order.__name__: order
    for order in (
        *(fork, clone_beside, fork_twice, flee),
        *(own_session, own_group, be_called, be_dumpable, adopt_orphans, set_stamp, leave_namespaces),
        *(lose_first_thread, become, open_socket, call, write),
    )
}

if __name__ == "__main__":
    main(sys.argv[1])
