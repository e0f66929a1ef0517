"""Files and folders that git reads: written in one step, and removed with care."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from windlass.core.errors import Unavailable
from windlass.system.files import write_whole

NEW = ".new-"
"""Prefix of a folder in which something is being made."""
GONE = ".gone-"
"""Prefix of a folder that is being removed."""


def config_text(lines: Iterable[tuple[str, str, str]]) -> str:
    """Write a git settings file from (section, name, value); entries without a value are left out."""
    return "".join(f"[{section}]\n\t{name} = {quoted(value)}\n" for section, name, value in lines if value)


def write_text(path: Path, text: str, *, mode: int = 0o600, only_if_new: bool = False) -> None:
    """Put a text in place in one step."""
    content = text.encode("utf-8", "surrogateescape")
    if only_if_new and path.is_file() and path.read_bytes() == content:
        return
    try:
        write_whole(path, content, mode=mode)
    except OSError as error:
        raise Unavailable(f"{path} could not be written: {error.strerror}.") from error


def exclude_pattern(name: str) -> str:
    """A line of an exclude file for exactly this path, from the top."""
    return "/" + re.sub(r"([\\*?\[\] !#])", r"\\\1", name)


def shown(name: bytes) -> str:
    """A file's name for people."""
    return name.decode("utf-8", "replace")


def folder_exists(path: str | Path) -> bool:
    """Whether a path is a folder, or a link to one."""
    try:
        return Path(path).is_dir()
    except OSError:  # a name that no folder can have
        return False


def exists(path: Path) -> bool:
    """Whether a path exists; a link that leads nowhere counts."""
    return os.path.lexists(path)


def make_folder(path: Path) -> None:
    """Make a private folder, and those above it that do not exist."""
    try:
        for parent in (*reversed(path.parents), path):
            if not parent.is_dir():
                parent.mkdir(exist_ok=True, mode=0o700)
    except OSError as error:
        raise Unavailable(f"The folder {path} could not be made: {error.strerror}.") from error


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """A place to make something that is then renamed to a path: at the path it is whole, or does not exist."""
    make_folder(path.parent)
    try:
        with tempfile.TemporaryDirectory(prefix=NEW, dir=path.parent, ignore_cleanup_errors=True) as folder:
            yield Path(folder) / "made"
    except OSError as error:
        raise Unavailable(f"{path} could not be made: {error.strerror}.") from error


def copy_or_clear(source: Path, target: Path) -> None:
    """Make one file like another, which may be missing."""
    if source.is_file():
        shutil.copy2(source, target)
    else:
        target.unlink(missing_ok=True)


def remove_tree(path: Path) -> None:
    """Remove a folder and all in it; links are removed and never followed, locked folders are opened first."""
    try:
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.exists():
            _remove_folder(path)
    except OSError as error:
        raise Unavailable(f"{path} could not be removed: {error.strerror}.") from error


def _remove_folder(path: Path) -> None:
    try:
        shutil.rmtree(path, onerror=_unlock)
    except RecursionError:  # deeper than Python goes; the program goes as deep as folders do, and follows no link
        subprocess.run(("rm", "-rf", "--", str(path)), stderr=subprocess.DEVNULL, check=False)
        if path.exists():
            raise OSError(errno.ENOTEMPTY, "something in it can't be removed") from None


def _unlock(_function: object, name: str, _problem: object) -> None:
    path = Path(name)
    path.parent.chmod(0o700)
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    else:
        path.chmod(0o700)
        shutil.rmtree(path)


def quoted(value: str) -> str:
    """Quote a text as git does in its settings and in lists of paths."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'
