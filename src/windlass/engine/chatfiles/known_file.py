"""What is remembered of a chat file while the daemon runs, and how a turn with it may end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from enum import Enum, IntEnum, auto

from windlass.core.messages.chat_file import ReadPosition


class Urgency(IntEnum):
    """How long the reader may wait for a message to become whole."""

    NONE = 0
    """A message that may still grow gets a moment without a change."""
    SPEAKS = 1
    """Its writer says something else now: what ends with a newline is whole."""
    GONE = 2
    """Its writer is gone: a line without its newline is whole, too."""


class Remainder(Enum):
    """The unread part of a file, after a turn."""

    NOTHING = auto()
    HALF = auto()
    """A line that has no end yet."""
    OPEN = auto()
    """A message that may still grow, or a file that is being replaced."""
    MORE = auto()
    """Messages that have to wait for the next turn."""


@dataclass(slots=True)
class KnownFile:
    """What the reader remembers of a file."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by whoever reads the file, or writes there."""
    position: ReadPosition | None = None
    told: int | None = None
    """The newest message of the log when all that the file shows was written there."""
    stuck: tuple[str, float] = ("", 0.0)
    """The key of the line that could not be sent, and since when."""
    barred: bool = False
    """The last try to add to it failed: a pipe is in its place, or a link."""
    saved: int = -1
    """The last message that it shows by the stored position; -1: none is stored."""
    behind: bool = False
    """It could not be added to when it last had something to show."""

    @property
    def owes(self) -> bool:
        return self.position is not None and bool(self.position.owed)

    @property
    def unsaved(self) -> int:
        """How many messages, at most, it has shown since its position was stored."""
        return self.position.shown - self.saved if self.position else 0
