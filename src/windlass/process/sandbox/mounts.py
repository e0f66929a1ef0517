"""The mounts of a sandbox: folders hidden, and some of their contents shown again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from posixpath import dirname, exists, isdir, normpath, realpath

_EMPTY, _READ, _WRITE, _LINK = "--tmpfs", "--ro-bind", "--bind", "--symlink"


@dataclass(frozen=True, slots=True)
class Mount:
    """One thing that is put into its place. All paths but a link's are real: none goes through a link."""

    option: str
    target: str
    source: str = ""

    @property
    def words(self) -> list[str]:
        return [self.option, *([self.source] if self.source else []), self.target]

    @property
    def hides(self) -> bool:
        """Whether what stands there otherwise can't be seen."""
        return self.source != self.target

    @property
    def is_folder(self) -> bool:
        return self.option == _EMPTY or isdir(self.source)

    @property
    def is_link(self) -> bool:
        return self.option == _LINK


class Mounts:
    """Collects them, and puts the outer ones first, whatever the order in which they were asked for."""

    def __init__(self) -> None:
        self._all: dict[str, Mount] = {}
        self._closed: list[str] = []

    def empty(self, folder: str, *, closed: bool = False) -> None:
        """Show an empty folder in the place of this one; nobody can write to a closed one."""
        if not self.is_hidden(realpath(folder)):
            self.clear(folder, closed=closed)

    def clear(self, folder: str, *, closed: bool) -> None:
        """The same, also in what is hidden, unless something else was said about this very folder."""
        real = realpath(folder)
        if real != "/" and isdir(real) and real not in self._all:
            self._put(Mount(_EMPTY, real))
            self._closed += [real] if closed else []

    def instead(self, folder: str, source: str) -> None:
        """Show another folder in the place of this one, writable."""
        self._put(Mount(_WRITE, realpath(folder), realpath(source)))

    def show(self, path: str) -> None:
        """Let this be seen, if it could not be, and not be written."""
        real = realpath(path)
        around = self._around(real)
        if around is not None and exists(real):
            self._bind(_READ, path, real, needed=around.hides or around.option == _WRITE)

    def open(self, path: str) -> None:
        """Let this be written."""
        real = realpath(path)
        if exists(real):
            self._bind(_WRITE, path, real, needed=True)

    def link(self, path: str, leads: str) -> None:
        self._put(Mount(_LINK, path, leads))

    def is_hidden(self, path: str) -> bool:
        """Whether this can't be seen as it is."""
        around = self._around(path)
        return around is not None and around.hides

    def is_open(self, path: str) -> bool:
        """Whether this is something of the user's that can be written."""
        around = self._around(path)
        return around is not None and around.option == _WRITE and not around.hides

    def directly_in(self, folder: str) -> Iterator[Mount]:
        """Mounts directly inside the stand-in of a folder: each needs a mount point there."""
        stand_in = self._all[folder]
        return (mount for mount in self._needed() if self._around(dirname(mount.target)) == stand_in)

    def words(self) -> list[str]:
        """All of it as options of bubblewrap."""
        words = [word for mount in self._needed() for word in mount.words]
        return words + [word for folder in self._closed for word in ("--remount-ro", folder)]

    def _bind(self, option: str, path: str, real: str, *, needed: bool) -> None:
        if needed:
            self._put(Mount(option, real, real))
        named = normpath(path)
        if named != real and self.is_hidden(named):
            self.link(named, real)

    def _put(self, mount: Mount) -> None:
        self._all[mount.target] = mount

    def _around(self, path: str) -> Mount | None:
        """The innermost that this is in."""
        while path not in self._all:
            if path in ("/", ""):
                return None
            path = dirname(path)
        return self._all[path]

    def _needed(self) -> list[Mount]:
        """From the outside to the inside, without what is shown with something around it."""
        mounts = sorted(self._all.values(), key=lambda mount: mount.target.count("/"))
        return [each for each in mounts if not (_is_shown(each) and _is_shown(self._around(dirname(each.target))))]


def _is_shown(mount: Mount | None) -> bool:
    return mount is not None and mount.option == _READ and not mount.hides
