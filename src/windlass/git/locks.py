"""Lock files that a killed git left in our own repositories."""

from __future__ import annotations

import logging
import os
import re
import shlex
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from windlass.core.errors import Unavailable, WindlassError

log = logging.getLogger("windlass")

_LOCK = re.compile(r"Unable to create '(.+?\.lock)': File exists")


def locked(err: str) -> WindlassError | None:
    """The error for a lock file that another git holds, or has left behind."""
    if found := _LOCK.search(err):
        return Unavailable(
            f"Another git is at work, or has left its lock behind: {found[1]} exists."
            f" If no git is running there, remove it: rm {shlex.quote(found[1])}"
        )
    return None


def freed(err: str, environment: Mapping[str, str]) -> bool:
    """Remove the lock that git complains about, if it is one of ours and no git is left that could have made it.

    A git that is killed (by the kernel, or with the machine) can't take its lock away. Ours are those in the hub, and
    of the index that this command was given; in the user's repository nothing is ever removed.
    """
    found = _LOCK.search(err)
    hub, index = environment.get("GIT_DIR", ""), environment.get("GIT_INDEX_FILE", "")
    if not found or not hub or not (found[1].startswith(f"{hub}/") or found[1] == f"{index}.lock"):
        return False
    lock = Path(found[1])
    try:
        before = lock.lstat()
        if _works_on(hub) or lock.lstat() != before:
            return False
        lock.unlink()
    except FileNotFoundError:
        return True  # its owner was only slow
    except OSError:
        return False
    log.warning("removed a lock that a killed git has left behind: %s", lock)
    return True


def works_in(checkout: str) -> bool:
    """Whether a git lives that works in a checkout."""
    for path in _processes():
        with suppress(OSError):
            if (path / "comm").read_text().startswith("git") and (path / "cwd").readlink().is_relative_to(checkout):
                return True
    return False


def _works_on(hub: str) -> bool:
    """Whether a process lives that was started to work on this hub."""
    wanted = f"GIT_DIR={hub}".encode()
    for path in _processes():
        with suppress(OSError):
            if wanted in (path / "environ").read_bytes().split(b"\0"):
                return True
    return False


def _processes() -> list[Path]:
    """All processes but ourselves."""
    return [path for path in Path("/proc").iterdir() if path.name.isdecimal() and int(path.name) != os.getpid()]
