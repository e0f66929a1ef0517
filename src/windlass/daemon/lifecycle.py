"""One daemon per home: the lock, the socket, and when to leave."""

from __future__ import annotations

import fcntl
import os
import socket
import stat
from pathlib import Path
from types import TracebackType

from windlass.core.errors import Conflict, NotAllowed, Unavailable
from windlass.core.runs.sandbox import DOOR, SOCKET

STORE = "windlass.db"
TRACES = ("hubs", "worktrees", "runs")
"""Folders of the home that show that there was a store."""


def prepare_home(home: Path) -> None:
    """Make the home, for its owner only."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = home.stat()
        if found.st_uid != os.getuid():
            raise NotAllowed(f"{home} belongs to another user.", hint="Set WINDLASS_HOME to a folder of your own.")
        if stat.S_IMODE(found.st_mode) & 0o077:
            home.chmod(0o700)
        for name in ("runs", "worktrees", "hubs", "checks", "homes", DOOR):
            (home / name).mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise Unavailable(
            f"{home} cannot be used: {error.strerror}.", hint="Set WINDLASS_HOME to a folder that you can write to."
        ) from error


class HomeLock:
    """Held by the one daemon of a home. The kernel lets go of it when the process dies."""

    def __init__(self, home: Path) -> None:
        self.path = home / "daemon.lock"
        self._file = -1

    def __enter__(self) -> HomeLock:
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            pid = os.pread(self._file, 20, 0).decode("ascii", "replace").strip()
            os.close(self._file)
            raise Conflict(f"A daemon is already running for this home, pid {pid or 'unknown'}.") from error
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)


def listen(home: Path) -> socket.socket:
    """The daemon's socket. A stale one is replaced: the lock says that nobody else serves it.

    It is in a folder of its own, which sandboxes are shown: what is in there is the newest daemon's.
    """
    hang_up(home)
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    folder = os.open(home / DOOR, os.O_RDONLY | os.O_DIRECTORY)
    before = os.umask(0o177)
    try:
        door.bind(f"/proc/self/fd/{folder}/{SOCKET}")  # a short way to a path of any length
    finally:
        os.umask(before)
        os.close(folder)
    door.listen(1024)
    door.settimeout(0.0)
    (home / SOCKET).symlink_to(f"{DOOR}/{SOCKET}")
    return door


def hang_up(home: Path) -> None:
    """Take the socket away, and the link that leads to it."""
    (home / SOCKET).unlink(missing_ok=True)
    (home / DOOR / SOCKET).unlink(missing_ok=True)
