"""Files that people and programs write as well as we: how far one was read, and what the engine needs of them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from windlass.core.messages.chat_line import Item, Own, digests
from windlass.core.messages.task_notification import Notification

BEFORE = 1024
"""Bytes before a place by which it is known again."""
MOST_BLAME = 3
"""How often refused lines wake their writer before a person writes to it."""
MOST_TOLD = 5
"""How many refused lines a writer is told of at once."""
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

    def goes_on_from(self, other: Slice) -> bool:
        """Whether it shows what another showed, and perhaps more."""
        return self.before == other.before and self.content.startswith(other.content)


class Chats(Protocol):
    """Files that others write, too, by their path below a folder. Links are never followed; nothing ever blocks."""

    def look(self, top: str, name: str, offset: int, limit: int, /) -> Slice | None:
        """At most `limit` bytes from a place on; None if there is no such file, or if it is none."""
        ...

    async def append(self, top: str, name: str, text: str, read: int = 0, /) -> bool:
        """Add to a file what others may add to at the same moment; not while its last line is unfinished.

        What stands before `read` is as it will be: where nothing follows, its last line is ended if it is not.
        """
        ...

    async def keep(self, top: str, name: str, to: str, /) -> bool:
        """Move a file to a path outside of its folder, which is about to go. False: there is no such file."""
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
class ReadPosition:
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
    """What we are about to write: the digest, and the message's id."""
    known: tuple[tuple[str, int], ...] = ()
    """What stands further on and was read before, in a file that was written anew: the digest, and how often."""
    refused: int = 0
    """How often something was refused since a person wrote to its writer."""
    blamed_at: int = 0
    """The number of the last message that told of it."""
    wrong: tuple[str, ...] = ()
    """What was refused, and its writer was not told of yet: the first few."""
    wrongs: int = 0
    """How many there were."""
    run: str = ""
    """The run of its writer in which it was last read."""
    heard: int = 0
    """How many messages were taken from it in that run."""
    mute_to: int = 0
    """The offset before which nothing is sent: its writer was stopped, or has said too much in one run."""
    muted: str = ""
    """The last run of which something was not sent: people were told."""

    def fits(self, found: Slice) -> bool:
        """Whether what stands before the place is what stood there."""
        if not self.offset:  # what is there may be what was there before the file was emptied
            return not self.recent
        return self.offset <= found.size and self.mark == _mark(found.before)

    def key(self, item: Item) -> str:
        """What tells this message from all others in the file, also from one that says the same."""
        return hashlib.blake2b(f"{self.chain} {item.digest}".encode(), digest_size=12).hexdigest()

    @property
    def own(self) -> Mapping[str, int]:
        """The digests of what will be read there and is not to be said, and how often."""
        return Counter(digest for digest, _ in self.owed) + Counter(dict(self.known))

    def past(self, item: Item) -> ReadPosition:
        """The same, with one message more; where it ends is not told yet."""
        recent = (*self.recent, item.digest)[-REMEMBERED:]
        noted = replace(self, recent=recent, first=self.first or item.digest)
        return noted._settled(item.digest) if isinstance(item, Own) else replace(noted, chain=self.key(item))

    def _settled(self, digest: str) -> ReadPosition:
        """The same, where one that was not to be said was met."""
        known = Counter(dict(self.known))
        if known[digest]:
            return replace(self, known=_counted(known - Counter([digest])))
        first = next(place for place, (each, _) in enumerate(self.owed) if each == digest)
        return replace(self, owed=(*self.owed[:first], *self.owed[first + 1 :]))

    def at_the_top(self) -> ReadPosition:
        """The same, before all that stands in the file."""
        return replace(self, offset=0, line=1, mark="", skipping=False, known=(), mute_to=0)

    def anew(self) -> ReadPosition:
        """The same for a file in which nothing of the old one stands: whatever is written there is new."""
        return replace(self.at_the_top(), first="", recent=(), muted="")

    def in_run(self, run: str) -> ReadPosition:
        """The same for a writer that is in this run."""
        return self if run == self.run else replace(self, run=run, heard=0)

    def is_mute(self, item: Item) -> bool:
        """Whether a message that was found from here on is not to be sent."""
        return self.offset + item.end <= self.mute_to

    def blamed(self, told: int, *, pardoned: bool) -> ReadPosition:
        """The same, after a message told of refused lines; `pardoned`: a person has written since the one before."""
        refused = 0 if pardoned else self.refused
        return replace(self, refused=min(refused, MOST_BLAME) + 1, blamed_at=told, wrong=(), wrongs=0)

    def found_wrong(self, reasons: Sequence[str]) -> ReadPosition:
        """The same, with more that its writer is to be told of."""
        return replace(self, wrong=(*self.wrong, *reasons)[:MOST_TOLD], wrongs=self.wrongs + len(reasons))

    @property
    def is_hopeless(self) -> bool:
        """So much was refused that its writer is told, and woken for it no more."""
        return self.refused > MOST_BLAME

    def at(self, found: Slice, end: int) -> ReadPosition:
        """The same, so many bytes further."""
        content = found.content[:end]
        mark = _mark((found.before + content)[-BEFORE:])
        return replace(self, offset=self.offset + end, line=self.line + content.count(b"\n"), mark=mark)


def found_again(place: ReadPosition, read: Callable[[int], Slice | None]) -> ReadPosition:
    """Where to read on in a file that was cut or replaced: behind the last message that is known.

    Where none is, all of it is new, unless it begins like the file that was read: then all of it is old. And where it
    begins with something else, it was written anew: all of it is read, but what is known is not said again.
    """
    top = place.at_the_top()
    there = _survey(top, read)
    if there.last is None:
        return there.end if place.first and there.first == place.first else top
    if _is_anew(place, there):
        return replace(top, known=_counted(there.known))
    return there.last


@dataclass(slots=True)
class _Survey:
    """What stands in a file, as far as it matters to whoever looks for a place in it."""

    end: ReadPosition
    first: str = ""
    """The digest of its first message."""
    last: ReadPosition | None = None
    """Behind the last message that is known; None: none is."""
    known: Counter[str] = field(default_factory=Counter)
    """How often each of those that are known stands there."""


def _survey(top: ReadPosition, read: Callable[[int], Slice | None]) -> _Survey:
    """Look through a file, one part after the other."""
    there, recent = _Survey(top), frozenset(top.recent)
    while (found := read(there.end.offset)) and found.content:
        here = there.end
        more = here.offset + len(found.content) < found.size
        ends = digests(found.content)
        ends = ends[:-1] if more and len(ends) > 1 else ends  # the last may go on
        there.first = there.first or next((digest for _, digest in ends), "")
        met = [(end, digest) for end, digest in ends if digest in recent]
        there.known.update(digest for _, digest in met)
        there.last = here.at(found, met[-1][0]) if met else there.last
        there.end = here.at(found, ends[-1][0] if ends else len(found.content) if more else 0)
        if not more:
            break
    return there


def _is_anew(place: ReadPosition, there: _Survey) -> bool:
    """Whether a file in which something is known begins with what was never read, and not with what was forgotten."""
    forgets = len(place.recent) == REMEMBERED and place.recent[0] in there.known
    return not forgets and there.first not in (place.first, *place.recent)


def _counted(digests: Counter[str]) -> tuple[tuple[str, int], ...]:
    return tuple(digests.items())


def _mark(before: bytes) -> str:
    return hashlib.blake2b(before, digest_size=8).hexdigest()
