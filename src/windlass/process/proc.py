"""What the kernel tells about processes, in /proc."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from windlass.core.run import Identity

MARKER = "WINDLASS_MARKER"
"""The variable by which a process is known as ours: `<home>:<run>`."""

_ENTRY = MARKER.encode() + b"="
_GONE = ("Z", "X", "x")
_LARGEST_ENVIRONMENT = 8 << 20


@dataclass(frozen=True, slots=True)
class Process:
    """One process, as it was when it was looked at."""

    pid: int
    parent: int
    session: int
    started: int
    state: str = field(compare=False)
    """R, S, Z …: it changes all the time, and does not make another process of it."""
    marker: str = ""

    @property
    def gone(self) -> bool:
        """Whether it has ended, and only waits to be reaped."""
        return self.state in _GONE

    @property
    def identity(self) -> Identity:
        return Identity(self.pid, self.started, boot_id())


@cache
def boot_id() -> str:
    """The kernel's name for the time since it was booted."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def process(pid: int) -> Process | None:
    """The process with that pid, or None if there is none (its marker is not looked at)."""
    return _parse(pid, _read(f"/proc/{pid}/stat", 4096))


def marker_of(pid: int) -> str:
    """The marker in a process's environment; nothing if it has none, or if we may not look."""
    environment = _read(f"/proc/{pid}/environ", _LARGEST_ENVIRONMENT)
    if environment.startswith(_ENTRY):
        start = 0
    elif (start := environment.find(b"\0" + _ENTRY) + 1) == 0:
        return ""
    return os.fsdecode(environment[start + len(_ENTRY) :].partition(b"\0")[0])


def census() -> dict[int, Process]:
    """Every living process with its marker."""
    return {each.pid: each for each in _living()}


def _living() -> Iterator[Process]:
    with os.scandir("/proc") as entries:
        pids = [int(each.name) for each in entries if each.name.isdecimal()]
    for pid in pids:
        found = process(pid)
        if found and not found.gone:
            yield replace(found, marker=marker_of(pid))


def _parse(pid: int, stat: bytes) -> Process | None:
    # the name in parentheses may itself hold spaces and parentheses: the fields begin after the last one
    fields = stat[stat.rfind(b")") + 1 :].split()
    if len(fields) < 20:
        return None
    return Process(pid, int(fields[1]), int(fields[3]), int(fields[19]), fields[0].decode())


def _read(path: str, limit: int) -> bytes:
    """A file of /proc, or nothing: processes vanish, and those of others are closed to us."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(descriptor, limit)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
