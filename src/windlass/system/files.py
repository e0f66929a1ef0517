"""Files in a folder that an agent can write: every step is taken from an open folder, and no link is followed.

A worktree may hold anything: a link where a folder was, a pipe where a file was, and both can be exchanged while we
look. So paths are never resolved by name: each folder is opened from the one above it with O_NOFOLLOW, nothing blocks,
reads are bounded, and files are made new beside the old ones and renamed into place. Unavailable says that the system
has no room to open a file: nobody may take that for a missing one.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from windlass.core.errors import Unavailable

_SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | _SAFE
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE

_OTHER_KIND = (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO)
"""Errors that tell of another kind of entry. All others are passed on: no such name, no right, no room, a bad disk."""
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""Errors that tell nothing of the file: there is no room to open one."""
_KINDS = {
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


_MORE_ROOM = "Try again. `ulimit -n` says how many files a program may open."


class NotPlain(OSError):
    """A link, a pipe or another kind of thing is where a plain file or folder must be. `kind` says which."""

    def __init__(self, kind: str, name: str = "it") -> None:
        super().__init__(f"{name} is {kind}")
        self.strerror = f"{name} is {kind}"
        self.kind = kind


@contextmanager
def open_folder(
    top: str | Path, *parts: str, make: bool = False, clear: bool = False, mode: int = 0o755
) -> Iterator[int]:
    """Open `top/part/part…` from the top down.

    `make` makes the folders that are missing, `clear` also removes what is in their way. Raises FileNotFoundError, or
    NotPlain at the first that is not a folder.
    """
    handle = _open(None, top, _FOLDER, str(top))
    try:
        for part in parts:
            if clear and _kind(handle, part) != "a folder":
                remove(handle, part)
            if make or clear:
                with suppress(FileExistsError):
                    os.mkdir(part, mode, dir_fd=handle)
            below = _open(handle, part, _FOLDER, part)
            os.close(handle)
            handle = below
        yield handle
    finally:
        os.close(handle)


@contextmanager
def open_folder_at(where: int, name: str) -> Iterator[int]:
    """Open a folder in an open folder. Raises FileNotFoundError or NotPlain."""
    handle = _open(where, name, _FOLDER, name)
    try:
        yield handle
    finally:
        os.close(handle)


@contextmanager
def open_file(where: int | None, name: str | Path, flags: int = os.O_RDONLY, mode: int = 0o600) -> Iterator[int]:
    """Open a plain file in an open folder, without waiting for anyone. Raises FileNotFoundError or NotPlain."""
    handle = _open(where, name, flags | _SAFE, "it", mode)
    try:
        found = stat.S_IFMT(os.fstat(handle).st_mode)
        if found != stat.S_IFREG:
            raise NotPlain(_KINDS.get(found, "a device"))
        yield handle
    finally:
        os.close(handle)


def read_file(where: int | None, name: str | Path, limit: int) -> bytes:
    """Read at most `limit` bytes of a plain file. Raises FileNotFoundError or NotPlain."""
    with open_file(where, name) as handle, os.fdopen(handle, "rb", closefd=False) as file:
        return file.read(limit)


def replace_file(where: int, name: str, content: bytes, *, mode: int = 0o644) -> None:
    """Put a file in place in one step. A link at its place is replaced, not followed; a folder there is NotPlain."""
    draft = f".{name}.{secrets.token_hex(6)}"
    handle = os.open(draft, _NEW_FILE, mode, dir_fd=where)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(draft, name, src_dir_fd=where, dst_dir_fd=where)
    except OSError as error:
        with suppress(OSError):
            os.unlink(draft, dir_fd=where)
        if error.errno in (errno.EISDIR, errno.ENOTEMPTY):
            raise NotPlain("a folder", name) from error
        raise


def write_whole(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Put a file in place in one step, in a folder that only we write: a link that leads to the folder is followed."""
    where = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        replace_file(where, path.name, content, mode=mode)
    finally:
        os.close(where)


def exists(where: int, name: str) -> bool:
    """Whether an open folder has an entry of that name, be it a link that leads nowhere."""
    return bool(_kind(where, name))


def remove(where: int, name: str) -> None:
    """Remove a file, a link, or a folder with all in it, if it exists; links are not followed."""
    with suppress(FileNotFoundError):
        if _kind(where, name) == "a folder":
            shutil.rmtree(name, dir_fd=where)
        else:
            os.unlink(name, dir_fd=where)


def _open(where: int | None, name: str | Path, flags: int, shown: str, mode: int = 0o600) -> int:
    try:
        return os.open(name, flags, mode, dir_fd=where)
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise Unavailable(f"{name} could not be opened: {error.strerror}.", hint=_MORE_ROOM) from error
        if error.errno not in _OTHER_KIND:
            raise
        raise NotPlain(_kind(where, name) or "another kind of thing", shown) from error


def _kind(where: int | None, name: str | Path) -> str:
    """The kind of entry that has this name, or nothing."""
    try:
        return _KINDS.get(stat.S_IFMT(os.stat(name, dir_fd=where, follow_symlinks=False).st_mode), "a device")
    except OSError:
        return ""
