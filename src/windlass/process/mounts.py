"""What a sandbox is made of: folders hidden, and some of what is in them shown again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_EMPTY, _READ, _WRITE, _LINK = "--tmpfs", "--ro-bind", "--bind", "--symlink"


@dataclass(frozen=True, slots=True)
class Mount:
    """One thing that is put into its place. All paths but a link's are real: none goes through a link."""

    option: str
    target: Path
    source: Path | None = None

    @property
    def words(self) -> list[str]:
        return [self.option, *([str(self.source)] if self.source else []), str(self.target)]

    @property
    def hides(self) -> bool:
        """Whether what stands there otherwise can't be seen."""
        return self.source != self.target

    @property
    def is_folder(self) -> bool:
        return self.option == _EMPTY or (self.source is not None and self.source.is_dir())

    @property
    def is_link(self) -> bool:
        return self.option == _LINK


class Mounts:
    """Collects them, and puts the outer ones first, whatever the order in which they were asked for."""

    def __init__(self) -> None:
        self._all: dict[Path, Mount] = {}
        self._closed: list[Path] = []

    def empty(self, folder: str, *, closed: bool = False) -> None:
        """Show an empty folder in the place of this one; nobody can write to a closed one."""
        real = Path(folder).resolve()
        if real == Path("/") or not real.is_dir() or self.is_hidden(real):
            return
        self._put(Mount(_EMPTY, real))
        if closed:
            self._closed.append(real)

    def close(self, folder: Path) -> None:
        """The same for a folder of ours, also in what is hidden, unless it was named otherwise."""
        real = folder.resolve()
        if real.is_dir() and real not in self._all:
            self._put(Mount(_EMPTY, real))
            self._closed.append(real)

    def instead(self, folder: Path, source: Path) -> None:
        """Show another folder in the place of this one, writable."""
        self._put(Mount(_WRITE, folder.resolve(), source.resolve()))

    def show(self, path: Path) -> None:
        """Let this be seen, if it could not be, and not be written."""
        around = self._around(path.resolve())
        if around is not None and path.exists():
            self._bind(_READ, path, needed=around.hides or around.option == _WRITE)

    def open(self, path: Path) -> None:
        """Let this be written."""
        if path.exists():
            self._bind(_WRITE, path, needed=True)

    def link(self, path: Path, leads: Path) -> None:
        self._put(Mount(_LINK, path, leads))

    def is_hidden(self, path: Path) -> bool:
        """Whether this can't be seen as it is."""
        around = self._around(path)
        return around is not None and around.hides

    def is_open(self, path: Path) -> bool:
        """Whether this is something of the user's that can be written."""
        around = self._around(path)
        return around is not None and around.option == _WRITE and not around.hides

    def directly_in(self, folder: Path) -> Iterator[Mount]:
        """What is put into that which stands for a folder, and needs a place there."""
        stand_in = self._all[folder]
        return (each for each in self._sorted() if self._around(each.target.parent) == stand_in)

    def words(self) -> list[str]:
        """All of it as options of bubblewrap."""
        words = [word for each in self._sorted() for word in each.words]
        return words + [word for each in self._closed for word in ("--remount-ro", str(each))]

    def _bind(self, option: str, path: Path, *, needed: bool) -> None:
        real, named = path.resolve(), Path(os.path.normpath(path))
        if needed:
            self._put(Mount(option, real, real))
        if named != real and self.is_hidden(named):
            self.link(named, real)

    def _put(self, mount: Mount) -> None:
        self._all[mount.target] = mount

    def _around(self, path: Path) -> Mount | None:
        """The innermost that this is in."""
        return next((self._all[each] for each in (path, *path.parents) if each in self._all), None)

    def _sorted(self) -> list[Mount]:
        return sorted(self._all.values(), key=lambda each: len(each.target.parts))
