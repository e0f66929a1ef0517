"""Files that people and programs write as well as we: read on from a place, added to, replaced."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable
from pathlib import Path

from windlass.core.errors import BadInput, Unavailable
from windlass.core.messages.chat_file import BEFORE, Slice
from windlass.core.messages.task_notification import Notification
from windlass.workdir import inside
from windlass.workdir.notification import read_notification

Listen = Callable[[Path, Callable[[], None]], Callable[[], None] | None]
"""Calls back when something in a folder is written; None: the kernel can't tell."""

FOLDER = ".windlass"

_SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_TO_ADD = os.O_RDWR | os.O_APPEND | os.O_CREAT | _SAFE


class ChatFiles:
    """The `Chats` port, on the files of this machine."""

    def __init__(self, listen: Listen | None = None) -> None:
        self._listen = listen

    def look(self, top: str, name: str, offset: int, limit: int, /) -> Slice | None:
        """Some of a file, from a place on; None if it is not there, or a link, a pipe, a folder."""
        *folders, last = _parts(name)
        try:
            with inside.folder(top, *folders) as where:
                handle = os.open(last, os.O_RDONLY | _SAFE, dir_fd=where)
                try:
                    return _slice(handle, offset, limit)
                finally:
                    os.close(handle)
        except (OSError, inside.Odd):
            return None

    async def append(self, top: str, name: str, text: str, read: int = 0, /) -> bool:
        """Add to the end in one write, which the kernel puts behind whatever others have added."""
        return await asyncio.to_thread(_append, top, name, text.encode("utf-8", "replace"), read)

    async def replace(self, top: str, name: str, text: str, /, *, expecting: bytes | None) -> bool:
        """Put a file into place, if what stands there is what was expected."""
        return await asyncio.to_thread(_replace, top, name, text.encode("utf-8", "replace"), expecting)

    def follow(self, top: str, changed: Callable[[], None], /) -> Callable[[], None] | None:
        """Listen to its `.windlass`, if there is one; what is elsewhere is found by looking."""
        folder = Path(top, FOLDER)
        return self._listen(folder, changed) if self._listen and folder.is_dir() else None

    def notification(self, text: str, /) -> Notification:
        """The task notification that a text is."""
        return read_notification(text)


def _slice(handle: int, offset: int, limit: int) -> Slice | None:
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        return None
    start = max(0, offset - BEFORE)
    content = os.pread(handle, offset - start + limit, start)
    return Slice(content[offset - start :], content[: offset - start], found.st_size)


def _append(top: str, name: str, content: bytes, read: int) -> bool:
    *folders, last = _parts(name)
    try:
        with inside.folder(top, *folders, make=True) as where:
            handle = os.open(last, _TO_ADD, 0o600, dir_fd=where)  # direct messages stand there, too
            try:
                size = _size(handle)
                if size and os.pread(handle, 1, size - 1) != b"\n":
                    if size != read:
                        return False
                    content = b"\n" + content
                if os.write(handle, content) != len(content):
                    raise Unavailable(f"{top}/{name} could not be written as a whole: the disk is full.")
            finally:
                os.close(handle)
    except FileNotFoundError:  # the folder itself is gone, and nobody reads what is written there
        return False
    except (OSError, inside.Odd) as error:
        raise Unavailable(f"{top}/{name} cannot be written: {error}.") from error
    return True


def _size(handle: int) -> int:
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        raise inside.Odd("it is not a file")
    if found.st_nlink > 1:
        raise inside.Odd("it has a second name elsewhere")
    return found.st_size


def _replace(top: str, name: str, content: bytes, expecting: bytes | None) -> bool:
    *folders, last = _parts(name)
    try:
        with inside.folder(top, *folders, make=True) as where:
            if _content(where, last, len(expecting or b"")) != expecting:
                return False
            inside.replace_file(where, last, content, mode=0o644)
    except FileNotFoundError:
        return False
    except (OSError, inside.Odd) as error:
        raise Unavailable(f"{top}/{name} cannot be written: {error}.") from error
    return True


def _content(where: int, name: str, length: int) -> bytes | None:
    """What stands there, as far as it matters; a link counts as nothing, and is not followed."""
    try:
        return inside.read_file(where, name, length + 1)
    except (FileNotFoundError, inside.Odd):
        return None


def _parts(name: str) -> tuple[str, ...]:
    parts = tuple(name.split("/"))
    if not all(parts) or {".", ".."} & {*parts} or "\0" in name:
        raise BadInput(f"{name!r} can't be the name of a file.")
    return parts
