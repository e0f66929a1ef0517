"""From a chat file to the log: what stands there is read on, a turn at a time, and sent as its writer's words.

A place is saved after what stands before it was sent. Each line has a key, made of the lines before it: what is read
again after a crash is known by it, and sent once. What we write ourselves is known by its digest when it is read.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum, auto
from functools import partial

from windlass.core.address import HUMAN
from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput, Conflict, NotAllowed, NotFound, Unavailable, WindlassError
from windlass.core.messages.chat_file import ReadPosition, Slice, found_again
from windlass.core.messages.chat_line import EVERYONE, ChatEntry, ChatProblem, Item, Names, Own, parse
from windlass.core.messages.members import Speaker
from windlass.core.messages.new_message import NewMessage
from windlass.core.ports import Ports
from windlass.core.ports.store import Writing
from windlass.engine.bell import Bell
from windlass.engine.chatfiles import files
from windlass.engine.chatfiles.files import ChatFile
from windlass.engine.chatfiles.shared_files import QUIET, Stillness
from windlass.engine.messages.talk import Talk

FILE = ".windlass/chat.md"
LIMIT = 1_100_000
"""Bytes that are looked at for one message. A message is smaller."""
SLICE = 64_000
"""Bytes that are looked at in one go, where whole messages are among them."""
TURN, SLICES = 50, 20
"""How many messages of one file are sent in a turn, and how many slices are read: then the others have theirs."""
LOOKS = 5
"""How often we look, at most, whether a message has come to rest before its writer says something else."""
EMPTIED = 4.0
"""Seconds after which whoever has emptied a file begins anew. An editor that only writes it again takes less."""
PATIENCE = 60.0
"""Seconds that a line which can't be sent now may hold up those below it."""
MOST_WRONG = 5000
"""Refused lines after which a writer that never stops is told of them."""
_BLANK = b" \t\r\n"


class Haste(IntEnum):
    """What may be waited for."""

    NONE = 0
    """A message that may still grow gets its moment of rest."""
    SPEAKS = 1
    """Its writer says something else now: what ends with a newline is whole."""
    GONE = 2
    """Its writer is gone: a line without its newline is whole, too."""


class Rest(Enum):
    """What is left in a file that was looked at."""

    NOTHING = auto()
    HALF = auto()
    """A line that has no end yet."""
    OPEN = auto()
    """A message that may still grow, or a file that is being replaced."""
    MORE = auto()
    """Messages that have to wait for the next turn."""


_THROUGH = (Rest.NOTHING, Rest.HALF)
"""Nothing more is there that could be read now."""


@dataclass(slots=True)
class KnownFile:
    """What is remembered of a file while it is there."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by whoever reads the file, or writes there."""
    place: ReadPosition | None = None
    told: int | None = None
    """The newest message of the log when all that the file shows was written there."""
    stuck: tuple[str, float] = ("", 0.0)
    """The key of the line that could not be sent, and since when."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Some of a file, and what is said there."""

    found: Slice
    items: Sequence[Item]
    is_full: bool
    """More may follow."""
    rest: Rest


@dataclass(frozen=True, slots=True)
class _Voice:
    """Who speaks in a file, and who can be meant."""

    speaker: Speaker
    names: Names


class ChatReader:
    """Reads the chat files of all projects and worktrees."""

    def __init__(self, ports: Ports, bell: Bell, talk: Talk, stillness: Stillness, stir: Callable[[str], None]) -> None:
        self.store = ports.store
        self.chats = ports.chats
        self.clock = ports.clock
        self.bell = bell
        self.talk = talk
        self.stillness = stillness
        self.stir = stir
        self._kept: dict[str, KnownFile] = {}

    # ── what is remembered ──

    def kept(self, corner: ChatFile) -> KnownFile:
        return self._kept.setdefault(corner.mark, KnownFile())

    def keep(self, known: Collection[ChatFile]) -> None:
        """Forget all files but these, and those that are being read."""
        marks = {each.mark for each in known}
        self._kept = {key: each for key, each in self._kept.items() if key in marks or each.lock.locked()}

    def forget(self, corner: ChatFile) -> None:
        self._kept.pop(corner.mark, None)

    async def place(self, corner: ChatFile) -> ReadPosition:
        kept = self.kept(corner)
        if kept.place is None:
            kept.place = files.revived(*await self.store.read(partial(files.stored, corner)))
        return kept.place

    async def save(
        self, corner: ChatFile, place: ReadPosition, refused: Sequence[str] = (), *, tell: bool = False
    ) -> None:
        """Keep the place; and, once a file is read through, tell its writer in the same step what was refused."""
        now, noted = self.clock.now(), place.found_wrong(refused)
        tells = bool(noted.wrongs) and (tell or noted.wrongs >= MOST_WRONG)

        def step(store: Writing) -> ReadPosition:
            after = files.blame(store, corner, noted, _told(corner, noted), now) if tells else noted
            files.save(store, corner, after, now)
            return after

        self.kept(corner).place = await self.store.write(step)
        if tells:
            self.bell.ring()
        else:
            self.bell.hum()

    # ── taking turns ──

    async def take_in(self, corner: ChatFile, *, gone: bool) -> None:
        """Take in what stands in a file now, because its writer goes on elsewhere, or has gone.

        What is added meanwhile waits: who never stops writing holds up nobody, not even itself.
        """
        found, looks = self.chats.look(corner.top, FILE, 0, 0), 0
        while found and looks < LOOKS:
            haste = Haste.GONE if gone else Haste.SPEAKS if looks == LOOKS - 1 else Haste.NONE
            async with self.kept(corner).lock:
                rest = await self._take_up_to(corner, found.size, haste)
            if rest in (Rest.NOTHING, Rest.HALF):
                return
            if rest is Rest.OPEN:
                looks += 1
                await asyncio.sleep(QUIET)  # the last message may still grow

    async def _take_up_to(self, corner: ChatFile, end: int, haste: Haste) -> Rest:
        """A turn, if something stands there before the end that we have not read; of one being replaced, none."""
        place = await self.place(corner)
        found = self.chats.look(corner.top, FILE, place.offset, 0)
        if found is None or (place.offset >= end and place.fits(found)):
            return Rest.NOTHING
        is_replaced = not place.fits(found)
        return Rest.NOTHING if is_replaced and haste is not Haste.GONE else await self.turn(corner, haste)

    async def turn(self, corner: ChatFile, haste: Haste = Haste.NONE) -> Rest:
        """Read on, as far as one may before the others have their turn. Returns what is left."""
        rest, most = Rest.MORE, TURN
        for _ in range(SLICES):
            rest, heard = await self._take(corner, haste, most)
            most -= heard
            if rest is not Rest.MORE or not most:
                break
        place = await self.place(corner)
        if rest is Rest.NOTHING and place.known:  # it was cut before they were met
            await self.save(corner, replace(place, known=()))
        if rest in _THROUGH and place.wrongs:
            await self.save(corner, await self.place(corner), tell=True)
        return rest

    async def _take(self, corner: ChatFile, haste: Haste, most: int) -> tuple[Rest, int]:
        """Send what the next part of a file says. Returns what is left, and how many messages of others it were."""
        place = await self.place(corner)
        found = self._look(corner, place, SLICE)
        if found is not None and not place.fits(found):
            if not (haste or self._is_still(corner, found)):
                return Rest.OPEN, 0
            place = await self._find_again(corner, place)
            found = self._look(corner, place, SLICE)
        if found is None or not found.content:
            await self._mind_emptied(corner, place, found)
            return Rest.NOTHING, 0
        voice = await self._voice(corner)
        reading = partial(self._read, corner, place, names=voice.names, haste=haste, most=most)
        part = await reading(found, SLICE)
        if place.skipping or (part.is_full and not part.items):  # one message, or a line, is longer
            start, found = found, self._look(corner, place, LIMIT)
            if found is None or not found.goes_on_from(start):  # it has changed meanwhile
                return Rest.OPEN, 0
            part = await reading(found, LIMIT)
        if place.skipping or (part.is_full and not part.items):
            await self._skip(corner, place, found)
        elif part.items:
            await self._accept(corner, place, part, voice)
        return part.rest, _others(part.items)

    async def _read(
        self, corner: ChatFile, place: ReadPosition, found: Slice, limit: int, *, names: Names, haste: Haste, most: int
    ) -> _Part:
        """The messages of this part of a file that are whole, but only so many."""
        is_full = len(found.content) == limit
        ended = haste is Haste.GONE and not is_full
        reading = partial(parse, found.content, names, line=place.line, own=place.own, most=most, ended=ended)
        items, goes_on = reading() if limit == SLICE else await asyncio.to_thread(reading)
        is_open = goes_on and bool(items) and not isinstance(items[-1], Own)
        if is_open and (is_full or not (haste or self._is_still(corner, found))):
            items = items[:-1]
        more = is_full or place.skipping or _others(items) >= most
        return _Part(found, items, is_full, Rest.MORE if more else _rest(found, items))

    def _look(self, corner: ChatFile, place: ReadPosition, limit: int) -> Slice | None:
        return self.chats.look(corner.top, FILE, place.offset, limit)

    def _is_still(self, corner: ChatFile, found: Slice, seconds: float = QUIET) -> bool:
        """Whether a file has not changed for a moment; if it has, we look again."""
        content = hashlib.blake2b(found.before + found.content, digest_size=8).hexdigest()
        return self.stillness.lasts(
            corner.top, f"{found.size} {content}", partial(self.stir, corner.top), seconds=seconds
        )

    async def _find_again(self, corner: ChatFile, place: ReadPosition) -> ReadPosition:
        """The place in a file that was cut or replaced."""
        look = partial(self.chats.look, corner.top, FILE)
        again = await asyncio.to_thread(found_again, place, lambda offset: look(offset, LIMIT))
        if again != place:
            await self.save(corner, again)
        return again

    async def _mind_emptied(self, corner: ChatFile, place: ReadPosition, found: Slice | None) -> None:
        """Whoever has emptied a file and left it so may say there what was said before."""
        if place.recent and found is not None and not found.size and self._is_still(corner, found, EMPTIED):
            await self.save(corner, place.anew())

    # ── what is said ──

    async def _accept(self, corner: ChatFile, place: ReadPosition, part: _Part, voice: _Voice) -> None:
        """Send what is said there, tell the writer what could not be, and save how far we are."""
        refused: list[str] = []
        end = 0
        for item in part.items:
            try:
                reason = await self._reason(corner, item, place.key(item), voice)
            except Unavailable:
                if end:  # what stands above it is not held up, nor sent again
                    await self.save(corner, place.at(part.found, end), refused)
                raise
            refused += [f"line {item.line} {reason}"] if reason else []
            place, end = place.past(item), item.end
        await self.save(corner, place.at(part.found, end), refused, tell=part.rest in _THROUGH)

    async def _skip(self, corner: ChatFile, place: ReadPosition, found: Slice) -> None:
        """Go past a line that is too long for a message, or past the rest of it."""
        end = (found.content.find(b"\n") if place.skipping else found.content.rfind(b"\n")) + 1
        refused = [] if place.skipping else [f"line {place.line} is longer than a message may be"]
        await self.save(corner, replace(place, skipping=not end).at(found, end or len(found.content)), refused)

    async def _reason(self, corner: ChatFile, item: Item, key: str, voice: _Voice) -> str:
        """Send what is said in a place. Returns why that is refused, if it is."""
        match item:
            case ChatEntry():
                return await self._send(corner, item, f"{corner.mark} {key}", voice)
            case ChatProblem():
                hint = near_miss(item.stranger[:60], [*voice.names.known, str(HUMAN)])
                return f"{item.reason}. {hint}".strip()
            case Own():
                return ""

    async def _send(self, corner: ChatFile, entry: ChatEntry, key: str, voice: _Voice) -> str:
        if corner.agent and entry.sender not in corner.names:
            return f"says that it is from {entry.sender}, and this file is written by {corner.writer}"
        try:
            await self.talk.put(voice.speaker, self._post(corner, entry, key, voice), corner.project)
        except Conflict as error:
            # where its key is known, it was said before, and other secrets were taken out of it
            known = await self.store.read(lambda store: store.keyed(corner.writer, key))
            return "" if known else _unsent(error)
        except Unavailable as error:
            if self._has_patience(corner, key):
                raise
            return _unsent(error)
        except (BadInput, NotAllowed, NotFound) as error:
            return _unsent(error)
        return ""

    def _has_patience(self, corner: ChatFile, key: str) -> bool:
        """Whether a line that can't be sent now is to be tried again."""
        kept, now = self.kept(corner), self.clock.monotonic()
        kept.stuck = kept.stuck if kept.stuck[0] == key else (key, now)
        return now - kept.stuck[1] < PATIENCE

    def _post(self, corner: ChatFile, entry: ChatEntry, key: str, voice: _Voice) -> NewMessage:
        everyone = EVERYONE in entry.to and EVERYONE not in voice.names.known
        return NewMessage(
            body=entry.body,
            to=() if everyone else entry.to,
            everyone=everyone,
            key=key,
            claims="" if corner.agent or entry.sender == str(HUMAN) else entry.sender,
        )

    async def _voice(self, corner: ChatFile) -> _Voice:
        speaker = await self.store.read(partial(files.speaker_of, corner))
        known = (await self.talk.directory.members(corner.project)).names(speaker)
        instances = {f"@{each.partition('@')[2]}" for each in known if "@" in each}
        return _Voice(speaker, Names(frozenset(known) | instances, corner.names))


def _others(items: Sequence[Item]) -> int:
    return sum(not isinstance(item, Own) for item in items)


def _rest(found: Slice, items: Sequence[Item]) -> Rest:
    """What is left behind these."""
    whole, _, half = found.content[items[-1].end if items else 0 :].rpartition(b"\n")
    if whole.strip(_BLANK):
        return Rest.OPEN
    return Rest.HALF if half.strip(_BLANK) else Rest.NOTHING


def _told(corner: ChatFile, place: ReadPosition) -> str:
    more = [f"and {place.wrongs - len(place.wrong)} more"] if place.wrongs > len(place.wrong) else []
    listed = "\n".join(f"- {each}" for each in (*place.wrong, *more))
    form = f"[{corner.writer}-to-NAME]: text"
    return (
        f"Some of {FILE} was not sent:\n\n{listed}\n\n"
        f"A message is one line, `{form}`; further lines of it are indented. Write what matters again."
    )


def _unsent(error: WindlassError) -> str:
    return f"was not sent: {error} {error.hint}".strip()
