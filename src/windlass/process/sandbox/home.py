"""The folder that stands for the user's home in a sandbox. Agents put anything into it, so no link is followed."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from windlass.process.sandbox.mounts import Mount

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LARGEST = 10_000_000
"""Bytes of a settings file."""


class SandboxHome:
    """An agent's own home, kept from run to run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self) -> None:
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def make_room(self, mounts: Iterable[Mount], home: str) -> None:
        """A folder or an empty file wherever something is to be put."""
        for mount in mounts:
            place = Path(mount.target).relative_to(home)
            if mount.is_link:
                with self._folder(place.parent) as where:
                    _clear(where, place.name)
            elif mount.is_folder:
                with self._folder(place):
                    pass
            else:
                self._write(place, b"")

    def copy(self, source: Path, place: Path) -> None:
        """Give the agent what a file holds now; nothing, if it is not there."""
        self._write(place, _content(source), empty=source.is_file())

    def _write(self, place: Path, content: bytes, *, empty: bool = True) -> None:
        """Put a new file there, whatever stood there before."""
        with self._folder(place.parent) as where:
            _clear(where, place.name)
            if content or empty:
                with os.fdopen(os.open(place.name, _NEW, 0o600, dir_fd=where), "wb") as file:
                    file.write(content)

    @contextmanager
    def _folder(self, place: Path) -> Iterator[int]:
        """Open a folder in it, made as needed; what is no folder gives way."""
        handle = os.open(self.path, _FOLDER)
        try:
            for part in place.parts:
                below = _step(handle, part)
                os.close(handle)
                handle = below
            yield handle
        finally:
            os.close(handle)


def there(path: str) -> str:
    """A file or folder that may not have been there: one that says nothing is made, so that nobody else can."""
    file = Path(path)
    if not file.exists() and file.suffix:
        file.write_bytes(b"{}\n" if file.suffix == ".json" else b"")
    elif not file.exists():
        file.mkdir()
    return path


def _step(above: int, part: str) -> int:
    with suppress(OSError):
        return os.open(part, _FOLDER, dir_fd=above)
    _clear(above, part)
    os.mkdir(part, 0o700, dir_fd=above)
    return os.open(part, _FOLDER, dir_fd=above)


def _clear(where: int, name: str) -> None:
    """Remove what stands there; a folder with all in it, without leaving through a link."""
    try:
        mode = os.stat(name, dir_fd=where, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        shutil.rmtree(name, dir_fd=where)
    else:
        os.unlink(name, dir_fd=where)


def _content(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(_LARGEST)
    except OSError:
        return b""
