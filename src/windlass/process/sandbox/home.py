"""The folder that stands for the user's home in a sandbox. Agents put anything into it, so no link is followed."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path

from windlass.process.sandbox.mounts import Mount
from windlass.system.files import open_folder, remove, replace_file

_LARGEST = 10_000_000
"""Bytes of a settings file."""


class SandboxHome:
    """An agent's own home, kept from run to run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def make_room(self, mounts: Iterable[Mount], home: str) -> None:
        """A folder or an empty file wherever something is to be put."""
        for mount in mounts:
            place = Path(mount.target).relative_to(home)
            if mount.is_link:
                with self._folder(place.parent) as where:
                    remove(where, place.name)
            elif mount.is_folder:
                with self._folder(place):
                    pass
            else:
                self.write(place, b"")

    def copy(self, source: Path, place: Path) -> None:
        """Give the agent what a file holds now; nothing, if it is not there."""
        self.write(place, _content(source), empty=source.is_file())

    def write(self, place: Path, content: bytes, *, empty: bool = True) -> None:
        """Put a new file there, whatever stood there before."""
        with self._folder(place.parent) as where:
            remove(where, place.name)
            if content or empty:
                replace_file(where, place.name, content, mode=0o600)

    def _folder(self, place: Path) -> AbstractContextManager[int]:
        """Open a folder in the home, made as needed; anything else of its name is removed."""
        return open_folder(self.path, *place.parts, clear=True, mode=0o700)


def there(path: str) -> str:
    """A file or folder that may not have been there: one that says nothing is made, so that nobody else can."""
    file = Path(path)
    if not file.exists() and file.suffix:
        file.write_bytes(b"{}\n" if file.suffix == ".json" else b"")
    elif not file.exists():
        file.mkdir()
    return path


def _content(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(_LARGEST)
    except OSError:
        return b""
