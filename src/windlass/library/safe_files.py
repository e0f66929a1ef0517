"""Reads small text files of the user's repository. No link is followed, nothing blocks, sizes are bounded."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from windlass.system.files import NotPlain, open_folder, read_file


class Unreadable(Exception):
    """A file can't be read as text. The words say why, the line where."""

    def __init__(self, words: str, line: int = 1) -> None:
        super().__init__(words)
        self.line = line


def is_top(folder: Path) -> bool:
    """Whether a folder is a repository's top. An empty `.git` does not count: other programs' sandboxes leave some."""
    git = folder / ".git"
    return git.is_file() or (git / "HEAD").exists()


@contextmanager
def folder(top: str, parts: Sequence[str]) -> Iterator[int]:
    """Open a folder step by step. Raises FileNotFoundError, or Unreadable where a part is not a plain folder."""
    with _readable(), open_folder(top, *parts) as handle:
        yield handle


def names(where: int, ending: str, most: int) -> list[str]:
    """The first names with this ending in an open folder, in order; hidden files are left out."""
    return sorted(name for name in os.listdir(where) if name.endswith(ending) and not name.startswith("."))[:most]


def text(where: int, name: str, limit: int) -> str:
    """Read a file as text, with lines ended by a newline alone. Raises FileNotFoundError or Unreadable."""
    with _readable():
        content = read_file(where, name, limit + 1)
    if len(content) > limit:
        raise Unreadable(f"it has more than {limit:,} bytes.")
    try:
        whole = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable("it is not UTF-8.", content.count(b"\n", 0, error.start) + 1) from error
    return whole.replace("\r\n", "\n").replace("\r", "\n")


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise
    except NotPlain as error:
        link = error.kind == "a symbolic link"
        raise Unreadable(f"it is {error.kind}{', which is not followed' if link else ''}.") from error
    except OSError as error:
        raise Unreadable(f"it can't be read: {error.strerror}.") from error
