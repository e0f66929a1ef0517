"""A disk of few megabytes, for tests that let it run full. Only root can mount one."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def can_mount() -> bool:
    """Whether we may mount a small disk; in a namespace of its own, which leaves no trace."""
    words = ("unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt")
    if os.geteuid() or not shutil.which("unshare"):
        return False
    return not subprocess.run(words, capture_output=True, check=False).returncode


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """A small disk at a folder, as long as this lasts."""
    _keep_mounts_to_ourselves()
    subprocess.run(("mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(folder)), check=True)
    try:
        yield
    finally:
        subprocess.run(("umount", "-l", str(folder)), check=True)


def fill(file: Path) -> None:
    """Let a file take all the room that is left on its disk."""
    ballast = os.open(file, os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(ballast, bytes(4096))
    except OSError:
        os.close(ballast)


def _keep_mounts_to_ourselves() -> None:
    """What we mount from now on, only we and what we start can see: it is gone with us, also if we are killed."""
    if ctypes.CDLL(None).unshare(0x20000):  # CLONE_NEWNS
        raise OSError("there can be no mounts of our own")
    subprocess.run(("mount", "--make-rprivate", "/"), check=True)
