"""A small process that starts programs for the daemon: it has one thread, so it can fork and prepare each one.

The daemon runs it as `python -I -S forker.py`, so it imports nothing of ours. Each program gets a session of its own, a
stamp, and the duty of a child subreaper: what loses its parents below it, in whatever session, becomes its child.
"""

from __future__ import annotations

import marshal
import os
import resource
import select
import signal
import socket
import struct
import sys
from collections.abc import Sequence
from typing import NoReturn

HEAD = struct.Struct("!I")
"""The length of a request: its words, its environment and its stamp. Its descriptors come with the head."""
REPLY = struct.Struct("!iQ")
"""The pid and start time of the new process; or minus the error's number, and nothing."""
GO = b"g"
"""What the new process awaits before it becomes the program: by then the daemon knows it."""
MOST_DESCRIPTORS = 8
LOCKS = 10
"""RLIMIT_LOCKS, which `resource` does not name."""
_SUBREAPER = 36
_PYTHONS_OWN = (signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that Python or this program handles in a way that a program must not inherit."""


def main() -> None:
    """Serve the daemon at the other end of standard input, and bury the dead, until it hangs up."""
    os.chdir("/")
    for files in sys.argv[1:]:  # what programs may open, where the daemon may open more
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(files), resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    line = socket.socket(fileno=0)
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    _adopt_orphans()
    while True:
        ready, _, _ = select.select([line.fileno(), woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            _bury()
        if line.fileno() in ready and not _serve(line):
            return


def _serve(line: socket.socket) -> bool:
    head, descriptors, _, _ = socket.recv_fds(line, HEAD.size, MOST_DESCRIPTORS)
    if len(head) < HEAD.size:
        return False
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)  # noqa: FBT003 - it has no name
    request = line.recv(HEAD.unpack(head)[0], socket.MSG_WAITALL)
    line.sendall(_fork(request, descriptors))
    for descriptor in descriptors:
        os.close(descriptor)
    return True


def _fork(request: bytes, descriptors: Sequence[int]) -> bytes:
    words, environment, stamp = marshal.loads(request)
    try:
        pid = os.fork()
    except OSError as error:
        return REPLY.pack(-(error.errno or 1), 0)
    if pid == 0:
        *streams, gate = descriptors
        _become(words, environment, stamp, streams, gate)
    return REPLY.pack(pid, _started(pid))


def _become(
    words: list[bytes], environment: dict[bytes, bytes], stamp: int, streams: Sequence[int], gate: int
) -> NoReturn:
    """Prepare this new process, wait for leave to go on, and become the program. Says at the gate why it could not."""
    try:
        os.setsid()
        _adopt_orphans()
        resource.setrlimit(LOCKS, (stamp, stamp))
        for number in _PYTHONS_OWN:
            signal.signal(number, signal.SIG_DFL)
        for place, stream in enumerate(streams):
            os.dup2(stream, place)
        if os.read(gate, 1) == GO:
            os.execve(words[0], words, environment)
    except OSError as error:
        os.write(gate, b"%d" % (error.errno or 1))
    finally:
        os._exit(127)


def _adopt_orphans() -> None:
    """Become the parent of all descendants that lose theirs; a new program in this process keeps that duty."""
    import ctypes  # noqa: PLC0415 - the daemon imports this module too, and has no use for it

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _started(pid: int) -> int:
    """The start time of our child, which is there until we bury it."""
    with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - pathlib is slow to import, and each fork copies it
        return int(file.read().rpartition(b")")[2].split()[19])


def _bury() -> None:
    """Take leave of all children that have ended, also of those that we adopted."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


if __name__ == "__main__":
    main()
