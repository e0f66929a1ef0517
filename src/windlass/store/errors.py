"""What SQLite's errors mean to people."""

from __future__ import annotations

from windlass.core.errors import Unavailable

_WRITABLE = "Make the file and its folder writable for your user."
_HINTS = {
    "disk is full": "Free some disk space; nothing was lost, and the next try goes on from here.",
    "disk I/O error": "Look at the disk's free space and health; nothing of this step was kept.",
    "readonly": _WRITABLE,
    "Permission denied": _WRITABLE,
    "unable to open": _WRITABLE,
    "locked": "Another program holds the store; end it and try again.",
}


def unavailable(path: str, error: Exception) -> Unavailable:
    """The database's error as ours, naming the file."""
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    hint = next((hint for part, hint in _HINTS.items() if part in words), "")
    return Unavailable(
        f"The store {path} failed: {words}.", hint=hint or "Run `windlass doctor`; the file is left as it is."
    )
