"""Read processes from /proc, tell whether one is still the one that was meant, and signal just that one."""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from windlass.core.errors import Unavailable
from windlass.core.nouns.run import Identity

NO_STAMP = (1 << 64) - 1
"""The stamp of a process that nobody stamped: it has no limit on file locks."""

_GONE = ("Z", "X", "x")
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_AT_ONCE = 1 << 15
_LOOKS = 20
"""How often we look for new processes, where some are born all the time."""


@dataclass(frozen=True, slots=True)
class Process:
    """One process, as it was when it was looked at."""

    pid: int
    parent: int
    session: int
    started: int
    state: str = field(compare=False)
    """R, S, Z …: it changes all the time, and does not make another process of it."""
    threads: int = field(default=1, compare=False)
    stamp: int = NO_STAMP

    @property
    def gone(self) -> bool:
        """Whether it has ended, and only waits to be reaped. One whose first thread alone has ended goes on."""
        return self.state in _GONE and self.threads <= 1

    @property
    def identity(self) -> Identity:
        return Identity(self.pid, self.started, boot_id())


@cache
def boot_id() -> str:
    """The kernel's name for the time since it was booted."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def process(pid: int) -> Process | None:
    """The process with that pid, or None if there is none (its stamp is not looked at)."""
    return _parse(pid, _read(f"/proc/{pid}/stat"))


def stamp_of(pid: int) -> int:
    """The stamp of a process: its hard limit on file locks."""
    words = _read(f"/proc/{pid}/limits").partition(b"Max file locks")[2].split(maxsplit=2)
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else NO_STAMP


def environment_of(pid: int) -> dict[str, str]:
    """The environment that a process was started with, as far as we may look."""
    pairs = (part.partition("=") for part in os.fsdecode(_read(f"/proc/{pid}/environ")).split("\0"))
    return {name: value for name, equals, value in pairs if equals}


def words_of(pid: int) -> list[str]:
    """The words that a process was started with."""
    return os.fsdecode(_read(f"/proc/{pid}/cmdline")).split("\0")


def living() -> Iterator[Process]:
    """Every living process with its stamp, also those that were born while we looked."""
    seen: set[int] = set()
    for _ in range(_LOOKS):
        new = _pids() - seen
        if not new:  # so all that live now were read
            return
        seen |= new
        for pid in new:
            found = process(pid)
            if found and not found.gone:
                yield replace(found, stamp=stamp_of(pid))


def identify(pid: int) -> Identity | None:
    """Name the process that has this pid now, so that a later one can't be mistaken for it."""
    found = process(pid)
    return found.identity if found else None


def is_alive(identity: Identity) -> bool:
    """Whether this very process lives: not a later one with its pid, not a zombie."""
    if identity.boot != boot_id():
        return False
    found = process(identity.pid)
    return found is not None and not found.gone and found.started == identity.started


def age_of(identity: Identity) -> float:
    """Seconds since this process was started; the wall clock has no part in it."""
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - identity.started / os.sysconf("SC_CLK_TCK"))


def send(identity: Identity, number: signal.Signals) -> None:
    """Signal this very process, if it lives and we may."""
    with suppress(ProcessLookupError, PermissionError):
        try:
            descriptor = os.pidfd_open(identity.pid)
        except ProcessLookupError:
            return
        except OSError:  # no pidfd on this kernel, or no descriptor left: then by pid
            if is_alive(identity):
                os.kill(identity.pid, number)
            return
        try:
            if is_alive(identity):  # asked after opening: the descriptor can't come to mean another process
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)


def is_open(file: os.stat_result) -> bool:
    """Whether a process that we may look into has this file open."""
    return any(_has_open(pid, (file.st_dev, file.st_ino)) for pid in _pids())


def _has_open(pid: int, file: tuple[int, int]) -> bool:
    """Whether it has; it may leave, and close files, while we look."""
    with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as handles:
        for handle in handles:
            with suppress(OSError):
                found = handle.stat()
                if (found.st_dev, found.st_ino) == file:
                    return True
    return False


def _pids() -> set[int]:
    try:
        with os.scandir("/proc") as entries:
            return {int(entry.name) for entry in entries if entry.name.isdecimal()}
    except OSError as error:
        raise Unavailable(f"The processes can't be listed: {error.strerror}.") from error


def _parse(pid: int, stat: bytes) -> Process | None:
    # the name in parentheses may itself hold spaces and parentheses: the fields begin after the last one
    fields = stat[stat.rfind(b")") + 1 :].split()
    if len(fields) < 20:
        return None
    return Process(pid, int(fields[1]), int(fields[3]), int(fields[19]), fields[0].decode(), int(fields[17]))


def _read(path: str) -> bytes:
    """A file of /proc, or nothing: processes vanish, and those of others are closed to us."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in _NO_ROOM:  # then we know nothing; it would be wrong to say that the process has gone
            raise Unavailable(f"{path} could not be read: {error.strerror}.") from error
        return b""
    try:
        content = some = os.read(descriptor, _AT_ONCE)
        while len(some) == _AT_ONCE:
            some = os.read(descriptor, _AT_ONCE)
            content += some
        return content
    except OSError:
        return b""
    finally:
        os.close(descriptor)
