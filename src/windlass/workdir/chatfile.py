"""Files that people and programs write as well as we: read on from a position, added to, replaced."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from windlass.core.errors import BadInput, Unavailable
from windlass.core.messages.chat_file import BEFORE, Slice
from windlass.core.messages.task_notification import Notification
from windlass.system import files
from windlass.workdir.notification import read_notification

Listen = Callable[[Path, Callable[[], None]], Callable[[], None] | None]
"""Calls back when a file in a folder is written; None: the kernel can't tell."""

FOLDER = ".windlass"


class ChatFiles:
    """The `Chats` port, on the files of this machine."""

    def __init__(self, listen: Listen | None = None) -> None:
        self._listen = listen

    def look(self, top: str, name: str, offset: int, limit: int, /) -> Slice | None:
        """Read some of a file, from an offset on; None if it is missing, or a link, a pipe, a folder."""
        *folders, last = _parts(name)
        start = max(0, offset - BEFORE)
        try:
            with files.open_folder(top, *folders) as where, files.open_file(where, last) as handle:
                size = os.fstat(handle).st_size
                content = os.pread(handle, offset - start + limit, start)
        except OSError:
            return None
        return Slice(content[offset - start :], content[: offset - start], size)

    async def append(self, top: str, name: str, text: str, read: int = 0, /) -> bool:
        """Add to the end in one write, which the kernel puts behind whatever others have added."""
        return await asyncio.to_thread(_append, top, name, text.encode("utf-8", "replace"), read)

    async def keep(self, top: str, name: str, to: str, /) -> bool:
        """Move a file in one step, of a link the link itself, beside those that were kept there before."""
        return await asyncio.to_thread(_keep, top, name, Path(to))

    async def replace(self, top: str, name: str, text: str, /, *, expecting: bytes | None) -> bool:
        """Put a file in place, if its content is what was expected."""
        return await asyncio.to_thread(_replace, top, name, text.encode("utf-8", "replace"), expecting)

    def follow(self, top: str, changed: Callable[[], None], /) -> Callable[[], None] | None:
        """Listen to the `.windlass` of a folder, if it has one; changes elsewhere are found by looking."""
        folder = Path(top, FOLDER)
        with suppress(OSError):  # its agent may have closed it to us
            return self._listen(folder, changed) if self._listen and folder.is_dir() else None
        return None

    def notification(self, text: str, /) -> Notification:
        """Read a text as a task notification. Raises BadInput for any other text."""
        return read_notification(text)


def _append(top: str, name: str, content: bytes, read: int) -> bool:
    *folders, last = _parts(name)
    to_add = os.O_RDWR | os.O_APPEND | os.O_CREAT
    try:
        with (
            files.open_folder(top, *folders, make=True) as where,
            files.open_file(where, last, to_add, mode=0o600) as handle,  # it may hold direct messages
        ):
            found = os.fstat(handle)
            if found.st_nlink > 1:
                raise Unavailable(f"{top}/{name} cannot be written: it has a second name elsewhere.")
            if found.st_size and os.pread(handle, 1, found.st_size - 1) != b"\n":
                if found.st_size != read:
                    return False
                content = b"\n" + content
            if os.write(handle, content) != len(content):
                raise Unavailable(f"{top}/{name} could not be written as a whole: the disk is full.")
    except FileNotFoundError:  # the folder itself is gone, and nobody reads what is written there
        return False
    except OSError as error:
        raise Unavailable(f"{top}/{name} cannot be written: {error}.") from error
    return True


def _keep(top: str, name: str, to: Path) -> bool:
    *folders, last = _parts(name)
    try:
        to.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with files.open_folder(top, *folders) as where:
            names = (to, *(to.with_name(f"{to.name}.{number}") for number in range(2, 100)))
            os.rename(last, next(name for name in names if not os.path.lexists(name)), src_dir_fd=where)
    except FileNotFoundError:
        return os.path.lexists(to)  # a daemon that has died since may have moved it
    except OSError as error:
        raise Unavailable(f"{top}/{name} cannot be kept as {to}: {error.strerror}.") from error
    return True


def _replace(top: str, name: str, content: bytes, expecting: bytes | None) -> bool:
    *folders, last = _parts(name)
    try:
        with files.open_folder(top, *folders, make=True) as where:
            if _content(where, last, len(expecting or b"")) != expecting:
                return False
            files.replace_file(where, last, content)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise Unavailable(f"{top}/{name} cannot be written: {error}.") from error
    return True


def _content(where: int, name: str, length: int) -> bytes | None:
    """Read a file as far as its length matters; a link counts as no file."""
    try:
        return files.read_file(where, name, length + 1)
    except (FileNotFoundError, files.NotPlain):
        return None


def _parts(name: str) -> tuple[str, ...]:
    parts = tuple(name.split("/"))
    if not all(parts) or {".", ".."} & {*parts} or "\0" in name:
        raise BadInput(f"{name!r} can't be the name of a file.")
    return parts
