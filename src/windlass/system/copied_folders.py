"""Copy what foreign code has written into new files and folders: whoever holds an old one open reaches none of them.

Every step is taken from an open folder, and no link is followed: what is copied may be exchanged while we look.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import ExitStack, suppress
from pathlib import Path, PurePosixPath

from windlass.system.files import open_file, open_folder, open_folder_at

_MODE = 0o777
_PIECE = 1 << 30


def copy_all(source: Path, target: Path) -> None:
    """Copy all that a folder holds into another. What stands there already stays; what is missing is nothing."""
    with ExitStack() as opened:
        try:
            old = opened.enter_context(open_folder(source))
        except FileNotFoundError:
            return
        new = opened.enter_context(open_folder(target))
        try:
            _copy_each(old, new)
        except RecursionError:
            raise OSError(errno.ENAMETOOLONG, "a folder in it lies too deep to be copied") from None


def copy_part(source: Path, target: Path, name: str) -> None:
    """Copy what has a name below one folder to the same name below another."""
    *above, last = PurePosixPath(name).parts
    with open_folder(source, *above) as old, open_folder(target, *above, make=True) as new:
        _copy(old, new, last)


def _copy_each(old: int, new: int) -> None:
    with os.scandir(old) as entries:
        names = [entry.name for entry in entries]
    for name in names:
        _copy(old, new, name)


def _copy(old: int, new: int, name: str) -> None:
    """Copy a file, a link, or a folder with all in it. Pipes, sockets and devices are left out."""
    kind = stat.S_IFMT(os.stat(name, dir_fd=old, follow_symlinks=False).st_mode)
    with suppress(FileExistsError):
        if kind == stat.S_IFDIR:
            _copy_folder(old, new, name)
        elif kind == stat.S_IFLNK:
            os.symlink(os.readlink(name, dir_fd=old), name, dir_fd=new)
        elif kind == stat.S_IFREG:
            _copy_file(old, new, name)


def _copy_folder(old: int, new: int, name: str) -> None:
    """Copy a folder, or into the one of its name; where something else has its name, nothing is copied."""
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=new)
    if not stat.S_ISDIR(os.stat(name, dir_fd=new, follow_symlinks=False).st_mode):
        return
    with ExitStack() as opened:
        source, target = (opened.enter_context(open_folder_at(where, name)) for where in (old, new))
        _copy_each(source, target)
        _same_marks(source, target)


def _copy_file(old: int, new: int, name: str) -> None:
    made = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with open_file(old, name) as source, open_file(new, name, made) as target:
        while _pour(source, target):
            pass
        _same_marks(source, target)


def _pour(source: int, target: int) -> int:
    """Copy a piece of a file, on some disks without a second copy of its bytes."""
    try:
        return os.copy_file_range(source, target, _PIECE)
    except OSError:  # not between these disks
        return os.sendfile(target, source, None, _PIECE)


def _same_marks(source: int, target: int) -> None:
    """Give a copy the rights and the times of what it is a copy of: builds look at times."""
    marks = os.fstat(source)
    os.fchmod(target, marks.st_mode & _MODE)
    os.utime(target, ns=(marks.st_atime_ns, marks.st_mtime_ns))
