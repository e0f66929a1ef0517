"""Reading small text files of the user's repository: no link is followed, nothing blocks, sizes are bounded."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Unreadable(Exception):
    """What stands there is not a text that we read. The words say why, the line where."""

    def __init__(self, words: str, line: int = 1) -> None:
        super().__init__(words)
        self.line = line


def is_top(folder: Path) -> bool:
    """Whether a repository is there. Sandboxes of other programs leave empty folders of this name, also in /tmp."""
    git = folder / ".git"
    return git.is_file() or (git / "HEAD").exists()


@contextmanager
def folder(top: str, parts: Sequence[str]) -> Iterator[int]:
    """Open a folder step by step. Raises FileNotFoundError, or Unreadable where a step is no plain folder."""
    handle = _open(top, _FOLDER, None)
    try:
        for part in parts:
            below = _open(part, _FOLDER, handle)
            os.close(handle)
            handle = below
        yield handle
    finally:
        os.close(handle)


def names(where: int, ending: str, most: int) -> list[str]:
    """The files there whose name ends so, in order, and at most so many; hidden ones are left out."""
    found = sorted(each for each in os.listdir(where) if each.endswith(ending) and not each.startswith("."))
    return found[:most]


def text(where: int, name: str, limit: int) -> str:
    """A file as text, with lines ended by a newline alone. Raises FileNotFoundError or Unreadable."""
    content = _content(_open(name, _FILE, where), limit)
    if len(content) > limit:
        raise Unreadable(f"it has more than {limit:,} bytes.")
    try:
        whole = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable("it is not UTF-8.", content.count(b"\n", 0, error.start) + 1) from error
    return whole.replace("\r\n", "\n").replace("\r", "\n")


def _content(handle: int, limit: int) -> bytes:
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise Unreadable("it is not a file.")
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read(limit + 1)
    finally:
        os.close(handle)


def _open(name: str, flags: int, where: int | None) -> int:
    try:
        return os.open(name, flags, dir_fd=where)
    except FileNotFoundError:
        raise
    except OSError as error:
        link = error.errno in (errno.ELOOP, errno.EMLINK) or _is_link(name, where)
        why = "it is a symbolic link, which is not followed." if link else f"it can't be read: {error.strerror}."
        raise Unreadable(why) from error


def _is_link(name: str, where: int | None) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=where, follow_symlinks=False).st_mode)
    except OSError:
        return False
