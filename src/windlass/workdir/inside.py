"""Files in a folder that an agent can write: every step is taken from an open folder, and no link is followed.

A worktree may hold anything: a link where a folder was, a pipe where a file was, and both can be exchanged while we
look. So paths are never resolved by name: each folder is opened from the one above it with O_NOFOLLOW, and files are
made new beside the old ones and renamed into place.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from windlass.core.errors import NotAllowed

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_TO_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NAMES_TRIED = 100


class Odd(Exception):
    """What stands there is no plain file or folder, or can't be read. The text says what it is."""


@contextmanager
def folder(top: str, *parts: str, make: bool = False) -> Iterator[int]:
    """Open `top/part/part…` from the top down. Raises FileNotFoundError, or Odd at the first part that is no folder."""
    handle = os.open(top, _FOLDER)
    try:
        for part in parts:
            below = _step(handle, part, make=make)
            os.close(handle)
            handle = below
        yield handle
    finally:
        os.close(handle)


def _step(above: int, part: str, *, make: bool) -> int:
    if make:
        with suppress(FileExistsError):
            os.mkdir(part, 0o755, dir_fd=above)
    try:
        return os.open(part, _FOLDER, dir_fd=above)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Odd(f"{part} is {_kind_of(above, part, error)}") from error


def _kind_of(above: int, name: str, error: OSError) -> str:
    """What stands there, in words."""
    with suppress(OSError):
        mode = os.stat(name, dir_fd=above, follow_symlinks=False).st_mode
        for is_kind, words in _KINDS:
            if is_kind(mode):
                return words
    return f"not to be opened ({os.strerror(error.errno or 0)})"


_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISREG, "a file"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (lambda mode: stat.S_ISCHR(mode) or stat.S_ISBLK(mode), "a device"),
)


def replace_file(where: int, name: str, content: bytes, *, mode: int = 0o644) -> None:
    """Put a file in place in one step; a link that stands there is replaced, not followed."""
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
            raise Odd(f"{name} is a folder") from error
        raise


def read_file(where: int, name: str, limit: int) -> bytes:
    """At most `limit` bytes of a plain file. Never waits; raises FileNotFoundError or Odd."""
    try:
        handle = os.open(name, _TO_READ, dir_fd=where)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Odd(f"it is {_kind_of(where, name, error)}") from error
    try:
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode):
            raise Odd("it is a folder" if stat.S_ISDIR(mode) else "it is not a file")
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read(limit)
    finally:
        os.close(handle)


def is_there(where: int, name: str) -> bool:
    """Whether something has that name, be it a link that leads nowhere."""
    try:
        os.stat(name, dir_fd=where, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def remove_file(where: int, name: str) -> None:
    """Remove a file or a link; nothing there is fine."""
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=where)


def remove_tree(where: int, name: str) -> None:
    """Remove whatever has that name, links as such; nothing there is fine."""
    try:
        shutil.rmtree(name, dir_fd=where)
    except FileNotFoundError:
        return
    except OSError:  # a link or a file
        remove_file(where, name)


def replace_link(where: int, name: str, target: str) -> None:
    """Put a link in place in one step; what stands there and is no such link is set aside."""
    with suppress(FileNotFoundError, OSError):
        if os.readlink(name, dir_fd=where) == target:
            return
    set_aside(where, name, f"{name}.before")
    os.symlink(target, name, dir_fd=where)


def set_aside(where: int, name: str, aside: str, *, into: int | None = None) -> None:
    """Rename whatever stands there to a name that is free, in the same folder or another; nothing there is fine."""
    target = where if into is None else into
    for number in range(1, _NAMES_TRIED + 1):
        free = aside if number == 1 else f"{aside}.{number}"
        if not is_there(target, free):
            with suppress(FileNotFoundError):
                os.rename(name, free, src_dir_fd=where, dst_dir_fd=target)
            return
    raise NotAllowed(f"There are already {_NAMES_TRIED} files called {aside}.", hint=f"Remove some {aside} files.")
