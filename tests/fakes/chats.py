"""The chats port in memory: files by their path, and hands that write them."""

from __future__ import annotations

from collections.abc import Callable

from windlass.core.errors import BadInput
from windlass.core.messages.chat_file import BEFORE, Slice
from windlass.core.messages.task_notification import Notification


class FakeChats:
    """What is in each file. Whoever follows a folder is called for each write that comes from outside."""

    def __init__(self) -> None:
        self.files: dict[tuple[str, str], bytes] = {}
        """By folder and name."""
        self.followed: dict[str, list[Callable[[], None]]] = {}
        self.notifications: dict[str, Notification] = {}
        """What texts are read as; all others are refused."""

    def write(self, top: str, name: str, content: bytes, *, add: bool = True) -> None:
        """Let someone else write a file."""
        self.files[top, name] = (self.files.get((top, name), b"") if add else b"") + content
        for changed in self.followed.get(top, []):
            changed()

    # ── the port ──

    def look(self, top: str, name: str, offset: int, limit: int, /) -> Slice | None:
        content = self.files.get((top, name))
        if content is None:
            return None
        before = content[max(0, offset - BEFORE) : offset]
        return Slice(content[offset : offset + limit], before, len(content))

    async def append(self, top: str, name: str, text: str, read: int = 0, /) -> bool:
        content = self.files.get((top, name), b"")
        if content and not content.endswith(b"\n"):
            if len(content) != read:
                return False
            content += b"\n"
        self.files[top, name] = content + text.encode("utf-8", "replace")
        return True

    async def keep(self, top: str, name: str, to: str, /) -> bool:
        folder, _, last = to.rpartition("/")
        if (top, name) in self.files:
            names = (last, *(f"{last}.{number}" for number in range(2, 100)))
            place = next(each for each in names if (folder, each) not in self.files)
            self.files[folder, place] = self.files.pop((top, name))
        return (folder, last) in self.files

    async def replace(self, top: str, name: str, text: str, /, *, expecting: bytes | None) -> bool:
        if self.files.get((top, name)) != expecting:
            return False
        self.files[top, name] = text.encode("utf-8", "replace")
        return True

    def follow(self, top: str, changed: Callable[[], None], /) -> Callable[[], None] | None:
        told = self.followed.setdefault(top, [])
        told.append(changed)
        return lambda: told.remove(changed)

    def notification(self, text: str, /) -> Notification:
        if text not in self.notifications:
            raise BadInput("This is no task notification.")
        return self.notifications[text]
