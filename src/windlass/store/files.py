"""Files of the store: private, and never half there."""

from __future__ import annotations

import os
from pathlib import Path


def create(path: Path) -> None:
    """Make a new, empty file that only its owner can read."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def rename(source: Path, target: Path) -> None:
    """Put a finished file in its place, and make both last."""
    _sync(source)
    source.replace(target)
    _sync(target.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
