"""Learning from the kernel that a file in a folder has grown: one inotify instance for all folders."""

from __future__ import annotations

import asyncio
import ctypes
import os
import struct
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from windlass.process.watching.exits import poll

_MODIFY, _MOVED_TO, _CREATE = 0x2, 0x80, 0x100
_OVERFLOW, _IGNORED, _ONLY_FOLDERS, _NO_LINKS = 0x4000, 0x8000, 0x0100_0000, 0x0200_0000
_EVENT = struct.Struct("iIII")


class FolderWatch:
    """Calls back when something in a watched folder changes."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor: int | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watches: dict[int, list[Callable[[], None]]] = {}
        """By the kernel's number of a folder, which is the same for all who watch that folder."""

    def watch(self, folder: Path, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` on the loop after each change in the folder. Returns what ends the watch."""
        try:
            return self._watch(folder, changed)
        except OSError:  # no inotify, or no room for one more watch
            return poll(partial(_sizes, folder), changed, seen=_sizes(folder))

    def listen(self, folder: Path, changed: Callable[[], None]) -> Callable[[], None]:
        """The same for a folder that others look after too: where the kernel can't tell us, nothing is heard of it."""
        try:
            return self._watch(folder, changed)
        except OSError:
            return lambda: None

    def close(self) -> None:
        """Give the descriptor back."""
        if self._descriptor is None or self._loop is None:
            return
        if not self._loop.is_closed():
            self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = None
        self._watches.clear()

    def _watch(self, folder: Path, changed: Callable[[], None]) -> Callable[[], None]:
        mask = _MODIFY | _MOVED_TO | _CREATE | _ONLY_FOLDERS | _NO_LINKS
        number = self._call(self._libc.inotify_add_watch, self._open(), os.fsencode(folder), mask)
        self._watches.setdefault(number, []).append(changed)
        return partial(self._remove, number, changed)

    def _open(self) -> int:
        if self._descriptor is None:
            self._descriptor = self._call(self._libc.inotify_init1, os.O_NONBLOCK | os.O_CLOEXEC)
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._descriptor, self._ready)
        return self._descriptor

    def _call(self, function: Callable[..., int], *arguments: object) -> int:
        result = function(*arguments)
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result

    def _remove(self, number: int, changed: Callable[[], None]) -> None:
        told = self._watches.get(number, [])
        if changed in told:
            told.remove(changed)
            if not told:
                del self._watches[number]
                if self._descriptor is not None:
                    self._libc.inotify_rm_watch(self._descriptor, number)

    def _ready(self) -> None:
        """Read what the kernel has to say, and tell each watcher once."""
        if self._descriptor is None or self._loop is None:
            return
        try:
            events = os.read(self._descriptor, 1 << 16)
        except BlockingIOError:
            return
        for number in self._changed(events):
            self._loop.call_soon(self._tell, number)

    def _changed(self, events: bytes) -> set[int]:
        changed = set()
        for number, mask in _parse(events):
            if mask & _OVERFLOW:  # some were lost, and nobody knows whose
                return set(self._watches)
            if not mask & _IGNORED:
                changed.add(number)
        return changed

    def _tell(self, number: int) -> None:
        for changed in tuple(self._watches.get(number, ())):
            changed()


def _parse(events: bytes) -> Iterator[tuple[int, int]]:
    position = 0
    while position < len(events):
        number, mask, _, length = _EVENT.unpack_from(events, position)
        yield number, mask
        position += _EVENT.size + length


def _sizes(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of each file in a folder."""
    try:
        with os.scandir(folder) as entries:
            stats = {entry.name: entry.stat(follow_symlinks=False) for entry in entries}
    except OSError:
        return {}
    return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in stats.items()}
