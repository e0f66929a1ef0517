"""A look at processes: who lives, who lives in a folder, and who waits for the daemon."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import patience

STEADY = patience.seconds(0.75)
"""Seconds after which an open connection is one on which a process waits."""


def waits(process: subprocess.Popen[bytes]) -> Callable[[], bool]:
    """Looks whether a process has had the same line to the daemon for a while: short questions are answered by then."""
    seen: dict[str, float] = {}

    def look() -> bool:
        now, open_now = time.monotonic(), set()
        for path in Path(f"/proc/{process.pid}/fd").iterdir():
            with suppress(OSError):  # closed meanwhile
                open_now.add(str(path.readlink()))
        for line in open_now:
            if line.startswith("socket:"):
                seen.setdefault(line, now)
        return any(line in open_now and now - at > STEADY for line, at in seen.items())

    return look


def lives(pid: int) -> bool:
    """Whether a process is there and not only waiting to be buried."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def inhabitants(folder: Path) -> dict[int, str]:
    """Processes that work in a folder, or know it by a variable of theirs."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                variables = (entry / "environ").read_bytes()
                if os.fsencode(folder) + b"/" in variables or (entry / "cwd").readlink().is_relative_to(folder):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found


def end(processes: Mapping[int, str]) -> None:
    for pid in processes:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
