"""Files that people and programs write as well as we: how far one was read, and what the engine needs of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from windlass.core.chatline import Item, Own, digests
from windlass.core.notification import Notification

BEFORE = 1024
"""Bytes before a place by which it is known again."""
BLAME, MOST_BLAME = 2, 8
"""How much refused lines count, each time; and from where on nobody is woken for them."""
REMEMBERED = 64
"""Messages by which a place is found in a file that was replaced."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Some of a file."""

    content: bytes
    """From the place on."""
    before: bytes
    """What stands right before it."""
    size: int
    """Of the whole file."""


class Chats(Protocol):
    """Files that others write, too, by their path below a folder. Links are never followed; nothing ever blocks."""

    def look(self, top: str, name: str, offset: int, limit: int, /) -> Slice | None:
        """At most `limit` bytes from a place on; None if there is no such file, or if it is none."""
        ...

    async def append(self, top: str, name: str, text: str, /) -> bool:
        """Add to a file what others may add to at the same moment; not while its last line is unfinished."""
        ...

    async def replace(self, top: str, name: str, text: str, /, *, expecting: bytes | None) -> bool:
        """Put a file into place in one step, unless it is not what it was thought to be (None: not there)."""
        ...

    def follow(self, top: str, changed: Callable[[], None], /) -> Callable[[], None] | None:
        """Call `changed` on the loop when something in its `.windlass` is written; returns what ends that, or None."""
        ...

    def notification(self, text: str, /) -> Notification:
        """The task notification that a text is, or BadInput."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """How far a chat file was read, and what of the log it shows."""

    offset: int = 0
    line: int = 1
    mark: str = ""
    """Tells what stands before the place from all else."""
    first: str = ""
    """The digest of the first message that there ever was."""
    recent: tuple[str, ...] = ()
    """The digests of the last ones."""
    chain: str = ""
    """A digest of all that others wrote there, one after the other: it makes each one's key."""
    skipping: bool = False
    """Inside a line that is too long: nothing of it is read until it ends."""
    shown: int = 0
    """The number of the last message of the log that was written there, or need not be."""
    owed: tuple[tuple[str, str], ...] = ()
    """What we are about to write: the digest, and the message's id. Without an id: what stands there, and was read."""
    refused: int = 0
    """How much was refused, and lately."""

    def fits(self, found: Slice) -> bool:
        """Whether what stands before the place is what stood there."""
        if not self.offset:  # what is there may be what was there before the file was emptied
            return not self.recent
        return self.offset <= found.size and self.mark == _mark(found.before)

    def key(self, item: Item) -> str:
        """What tells this message from all others in the file, also from one that says the same."""
        return hashlib.blake2b(f"{self.chain} {item.digest}".encode(), digest_size=12).hexdigest()

    def past(self, item: Item) -> Place:
        """The same, with one message more; where it ends is not told yet."""
        recent = (*self.recent, item.digest)[-REMEMBERED:]
        noted = replace(self, recent=recent, first=self.first or item.digest)
        if isinstance(item, Own):
            owed = list(noted.owed)
            owed.remove(next(each for each in owed if each[0] == item.digest))
            return replace(noted, owed=tuple(owed))
        return replace(noted, chain=self.key(item))

    def without(self, there: Sequence[str]) -> Place:
        """The same, where those of these messages that are known are not to be said again."""
        known = [(each, "") for each in there if each in self.recent]
        return replace(self, owed=(*known, *self.owed))

    def blamed(self) -> Place:
        """The same, with lines that were refused."""
        return replace(self, refused=min(self.refused + BLAME, MOST_BLAME))

    def forgiven(self) -> Place:
        """The same, with lines of which none was refused."""
        return replace(self, refused=max(0, self.refused - 1))

    @property
    def is_hopeless(self) -> bool:
        """So much was refused that its writer is told, and woken for it no more."""
        return self.refused >= MOST_BLAME

    def at(self, found: Slice, end: int) -> Place:
        """The same, so many bytes further."""
        content = found.content[:end]
        mark = _mark((found.before + content)[-BEFORE:])
        return replace(self, offset=self.offset + end, line=self.line + content.count(b"\n"), mark=mark)


def found_again(place: Place, read: Callable[[int], Slice | None]) -> Place:
    """Where to read on in a file that was cut or replaced: behind the last message that is known.

    Where none is, all of it is new, unless it begins like the file that was read: then all of it is old. And where it
    begins with something else, it was written anew: all of it is read, but what is known is not said again.
    """
    owed = tuple((digest, key) for digest, key in place.owed if key)
    start = here = replace(place, offset=0, line=1, mark="", skipping=False, owed=owed)
    known: Place | None = None
    there: list[str] = []
    while (found := read(here.offset)) and found.content:
        more = here.offset + len(found.content) < found.size
        ends = digests(found.content)
        ends = ends[:-1] if more and len(ends) > 1 else ends  # the last may go on
        there += [digest for _, digest in ends]
        last = next((end for end, digest in reversed(ends) if digest in place.recent), 0)
        known = here.at(found, last) if last else known
        here = here.at(found, ends[-1][0] if ends else len(found.content))
        if not more:
            break
    if known is None:
        return here if place.first in there[:1] else start
    return start.without(there) if _is_new(place, there) else known


def _is_new(place: Place, there: Sequence[str]) -> bool:
    """Whether a file in which something is known begins with what was never read, and not with what was forgotten."""
    forgets = len(place.recent) == REMEMBERED and place.recent[0] in there
    return not forgets and there[0] not in (place.first, *place.recent)


def _mark(before: bytes) -> str:
    return hashlib.blake2b(before, digest_size=8).hexdigest()
