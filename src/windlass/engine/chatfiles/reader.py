"""From a chat file to the log: each file is read on, a turn at a time, and its lines are sent as its writer's words.

A position is saved after the lines before it were sent. Each line has a key, made of the lines before it: a line that
is read again after a crash has the same key, and is sent once. Our own lines are known by their digests.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
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
from windlass.engine.chatfiles import files
from windlass.engine.chatfiles.files import ChatFile
from windlass.engine.chatfiles.known_file import KnownFile, Remainder, Urgency
from windlass.engine.chatfiles.quiet_files import QUIET, QuietFiles
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
MOST_HEARD = 500
"""Messages of one file that are sent in one run of its agent."""
MOST_WRONG = 5000
"""Refused lines after which a writer that never stops is told of them."""
_BLANK = b" \t\r\n"


_THROUGH = (Remainder.NOTHING, Remainder.HALF)
"""Nothing more is there that could be read now."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Some of a file, and what is said there."""

    found: Slice
    items: Sequence[Item]
    is_full: bool
    """More may follow."""
    rest: Remainder


@dataclass(frozen=True, slots=True)
class _Author:
    """Who writes a file, and whom its lines can name."""

    speaker: Speaker
    names: Names
    stopped: bool
    """Its latest run was stopped: it says nothing more."""


class ChatReader:
    """Reads the chat files of all projects and worktrees."""

    def __init__(self, ports: Ports, talk: Talk, quiet: QuietFiles, note_change: Callable[[str], None]) -> None:
        self.store = ports.store
        self.chats = ports.chats
        self.clock = ports.clock
        self.talk = talk
        self.quiet = quiet
        self.note_change = note_change
        self._kept: dict[str, KnownFile] = {}

    # ── memory ──

    def kept(self, file: ChatFile) -> KnownFile:
        return self._kept.setdefault(file.mark, KnownFile())

    def keep(self, known: Collection[ChatFile]) -> None:
        """Forget all files but these, and those that are being read."""
        marks = {file.mark for file in known}
        self._kept = {key: kept for key, kept in self._kept.items() if key in marks or kept.lock.locked()}

    def forget(self, file: ChatFile) -> None:
        self._kept.pop(file.mark, None)

    async def position(self, file: ChatFile) -> ReadPosition:
        kept = self.kept(file)
        if kept.position is None:
            position, kept.saved = await self.store.read(partial(files.load, file))
            kept.position = position
        return kept.position

    async def save_all(self, known: Iterable[ChatFile]) -> None:
        """Store the positions that have only moved past what we have added ourselves, in one step."""
        kept = [(file, self._kept[file.mark]) for file in known if file.mark in self._kept]
        moved = [(file, one, one.position) for file, one in kept if one.position and one.unsaved and one.saved >= 0]
        if not moved:
            return

        def step(store: Writing) -> None:
            for file, _, position in moved:
                files.save(store, file, position)

        await self.store.write(step)
        for _, one, position in moved:
            one.saved = position.shown

    def pass_own(self, file: ChatFile, text: str) -> bool:
        """Go past what was just added for all that is owed, if nothing else has come. Returns whether that was so."""
        kept, content = self.kept(file), text.encode("utf-8", "replace")
        position = kept.position
        found = self.chats.look(file.top, FILE, position.offset, len(content) + 2) if position else None
        if (
            position is None
            or found is None
            or not position.fits(found)
            or found.content not in (content, b"\n" + content)
        ):
            return False
        for digest, _ in position.owed:
            position = position.past(Own(position.line, len(found.content), digest))
        kept.position = position.at(found, len(found.content))
        return True

    async def save(
        self,
        file: ChatFile,
        position: ReadPosition,
        refused: Sequence[str] = (),
        *,
        tell: bool = False,
        unsent: str = "",
    ) -> None:
        """Keep the position; and, once a file is read through, tell its writer in the same step what was refused.

        `unsent` is what the person is told of a rest that is not sent."""
        now, noted = self.clock.now(), position.found_wrong(refused)
        tells = bool(noted.wrongs) and (tell or noted.wrongs >= MOST_WRONG)

        def step(store: Writing) -> ReadPosition:
            after = files.tell_writer(store, file, noted, _told(file, noted), now) if tells else noted
            files.save(store, file, after)
            if unsent:
                files.tell_of_rest(store, file, unsent, now)
            return after

        kept = self.kept(file)
        kept.position = await self.store.write(step)
        kept.saved = kept.position.shown

    # ── taking turns ──

    async def take_in(self, file: ChatFile, *, gone: bool) -> None:
        """Send what a file holds now, because its writer speaks elsewhere, or has gone.

        Lines that are added meanwhile wait: a writer that never stops holds up nobody, not even itself.
        """
        found, looks = self.chats.look(file.top, FILE, 0, 0), 0
        while found and looks < LOOKS:
            urgency = Urgency.GONE if gone else Urgency.SPEAKS if looks == LOOKS - 1 else Urgency.NONE
            async with self.kept(file).lock:
                rest = await self._take_up_to(file, found.size, urgency)
            if rest in _THROUGH or (await self.position(file)).mute_to >= found.size:
                return  # nothing is there that is to be sent
            if rest is Remainder.OPEN:
                looks += 1
                await asyncio.sleep(QUIET)  # the last message may still grow

    async def _take_up_to(self, file: ChatFile, end: int, urgency: Urgency) -> Remainder:
        """A turn, if the file has unread lines before the end; none for a file that is being replaced."""
        position = await self.position(file)
        found = self.chats.look(file.top, FILE, position.offset, 0)
        if found is None or (position.offset >= end and position.fits(found)):
            return Remainder.NOTHING
        is_replaced = not position.fits(found)
        return Remainder.NOTHING if is_replaced and urgency is not Urgency.GONE else await self.turn(file, urgency)

    async def turn(self, file: ChatFile, urgency: Urgency = Urgency.NONE) -> Remainder:
        """Read on, as far as one may before the others have their turn. Returns what is left."""
        rest, most = Remainder.MORE, TURN
        for _ in range(SLICES):
            rest, heard = await self._take(file, urgency, most)
            most -= heard
            if rest is not Remainder.MORE or not most:
                break
        position = await self.position(file)
        if rest is Remainder.NOTHING and position.known:  # it was cut before they were met
            await self.save(file, replace(position, known=()))
        if rest in _THROUGH and position.wrongs:
            await self.save(file, await self.position(file), tell=True)
        return rest

    async def _take(self, file: ChatFile, urgency: Urgency, most: int) -> tuple[Remainder, int]:
        """Send what the next part of a file says. Returns what is left, and how many messages of others it were."""
        position = await self.position(file)
        found = self._look(file, position, SLICE)
        if found is not None and not position.fits(found):
            if not (urgency or self._is_quiet(file, found)):
                return Remainder.OPEN, 0
            position = await self._find_again(file, position)
            found = self._look(file, position, SLICE)
        if found is None or not found.content:
            if position.recent and found and not found.size and self._is_quiet(file, found, EMPTIED):
                await self.save(file, position.anew())  # it stays empty: the same lines may be sent again
            return Remainder.NOTHING, 0
        author = await self._author_of(file)
        position = position.in_run(author.speaker.run)
        if file.agent and (author.stopped or position.heard >= MOST_HEARD):
            position = replace(position, mute_to=found.size)
        reading = partial(self._read, file, position, names=author.names, urgency=urgency, most=most)
        part = await reading(found, SLICE)
        if position.skipping or (part.is_full and not part.items):  # one message, or a line, is longer
            start, found = found, self._look(file, position, LIMIT)
            if found is None or not found.goes_on_from(start):  # it has changed meanwhile
                return Remainder.OPEN, 0
            part = await reading(found, LIMIT)
        if position.skipping or (part.is_full and not part.items):
            await self._skip(file, position, found)
        elif part.items:
            await self._accept(file, position, part, author)
        return part.rest, _others(part.items)

    async def _read(
        self,
        file: ChatFile,
        position: ReadPosition,
        found: Slice,
        limit: int,
        *,
        names: Names,
        urgency: Urgency,
        most: int,
    ) -> _Part:
        """The messages of this part of a file that are whole, but only so many."""
        is_full = len(found.content) == limit
        ended = urgency is Urgency.GONE and not is_full
        reading = partial(parse, found.content, names, line=position.line, own=position.own, most=most, ended=ended)
        items, goes_on = reading() if limit == SLICE else await asyncio.to_thread(reading)
        is_open = goes_on and bool(items) and not isinstance(items[-1], Own)
        if is_open and (is_full or not (urgency or self._is_quiet(file, found))):
            items = items[:-1]
        more = is_full or position.skipping or _others(items) >= most
        return _Part(found, items, is_full, Remainder.MORE if more else _rest(found, items))

    def _look(self, file: ChatFile, position: ReadPosition, limit: int) -> Slice | None:
        return self.chats.look(file.top, FILE, position.offset, limit)

    def _is_quiet(self, file: ChatFile, found: Slice, seconds: float = QUIET) -> bool:
        """Whether a file has not changed for a moment; if it has, we look again."""
        content = hashlib.blake2b(found.before + found.content, digest_size=8).hexdigest()
        return self.quiet.is_quiet(
            file.top, f"{found.size} {content}", partial(self.note_change, file.top), seconds=seconds
        )

    async def _find_again(self, file: ChatFile, position: ReadPosition) -> ReadPosition:
        """The position in a file that was cut or replaced."""
        look = partial(self.chats.look, file.top, FILE)
        again = await asyncio.to_thread(found_again, position, lambda offset: look(offset, LIMIT))
        if again != position:
            await self.save(file, again)
        return again

    # ── sending ──

    async def _accept(self, file: ChatFile, position: ReadPosition, part: _Part, author: _Author) -> None:
        """Send what is said there, tell the writer what could not be, and save how far we are."""
        refused: list[str] = []
        end, unsent = 0, ""
        for item in part.items:
            if position.is_mute(item):
                if position.muted != position.run and isinstance(item, ChatEntry):
                    unsent, position = _left(file, item, author), replace(position, muted=position.run)
                position, end = position.past(item), item.end
                continue
            try:
                reason = await self._reason(file, item, position.key(item), author)
            except Unavailable:
                if end:  # what stands above it is not held up, nor sent again
                    await self.save(file, position.at(part.found, end), refused)
                raise
            refused += [f"line {item.line} {reason}"] if reason else []
            position, end = position.past(item), item.end
            if isinstance(item, ChatEntry) and file.agent:
                heard = position.heard + 1
                mute_to = part.found.size if heard >= MOST_HEARD else position.mute_to
                position = replace(position, heard=heard, mute_to=mute_to)
        await self.save(file, position.at(part.found, end), refused, tell=part.rest in _THROUGH, unsent=unsent)

    async def _skip(self, file: ChatFile, position: ReadPosition, found: Slice) -> None:
        """Go past a line that is too long for a message, or past the rest of it."""
        end = (found.content.find(b"\n") if position.skipping else found.content.rfind(b"\n")) + 1
        refused = [] if position.skipping else [f"line {position.line} is longer than a message may be"]
        await self.save(file, replace(position, skipping=not end).at(found, end or len(found.content)), refused)

    async def _reason(self, file: ChatFile, item: Item, key: str, author: _Author) -> str:
        """Send what is said in a position. Returns why that is refused, if it is."""
        match item:
            case ChatEntry():
                return await self._send(file, item, f"{file.mark} {key}", author)
            case ChatProblem():
                hint = near_miss(item.stranger[:60], [*author.names.known, str(HUMAN)])
                return f"{item.reason}. {hint}".strip()
            case Own():
                return ""

    async def _send(self, file: ChatFile, entry: ChatEntry, key: str, author: _Author) -> str:
        if file.agent and entry.sender not in file.names:
            return f"says that it is from {entry.sender}, and this file is written by {file.writer}"
        try:
            await self.talk.put(author.speaker, self._post(file, entry, key), file.project)
        except Conflict as error:
            # where its key is known, it was said before, and other secrets were taken out of it
            known = await self.store.read(lambda store: store.keyed(file.writer, key))
            return "" if known else _unsent(error)
        except Unavailable as error:
            if self._has_patience(file, key):
                raise
            return _unsent(error)
        except (BadInput, NotAllowed, NotFound) as error:
            return _unsent(error)
        return ""

    def _has_patience(self, file: ChatFile, key: str) -> bool:
        """Whether a line that can't be sent now is to be tried again."""
        kept, now = self.kept(file), self.clock.monotonic()
        kept.stuck = kept.stuck if kept.stuck[0] == key else (key, now)
        return now - kept.stuck[1] < PATIENCE

    def _post(self, file: ChatFile, entry: ChatEntry, key: str) -> NewMessage:
        everyone = EVERYONE in entry.to
        return NewMessage(
            body=entry.body,
            to=() if everyone else entry.to,
            everyone=everyone,
            key=key,
            claims="" if file.agent or entry.sender == str(HUMAN) else entry.sender,
        )

    async def _author_of(self, file: ChatFile) -> _Author:
        speaker, stopped = await self.store.read(partial(files.speaker_of, file))
        known = (await self.talk.directory.members(file.project)).names(speaker)
        instances = {f"@{name.partition('@')[2]}" for name in known if "@" in name}
        return _Author(speaker, Names(frozenset(known) | instances, file.names), stopped)


def _others(items: Sequence[Item]) -> int:
    return sum(not isinstance(item, Own) for item in items)


def _rest(found: Slice, items: Sequence[Item]) -> Remainder:
    whole, _, half = found.content[items[-1].end if items else 0 :].rpartition(b"\n")
    if whole.strip(_BLANK):
        return Remainder.OPEN
    return Remainder.HALF if half.strip(_BLANK) else Remainder.NOTHING


def _told(file: ChatFile, position: ReadPosition) -> str:
    more = [f"and {position.wrongs - len(position.wrong)} more"] if position.wrongs > len(position.wrong) else []
    listed = "\n".join(f"- {reason}" for reason in (*position.wrong, *more))
    form = f"[{file.writer}-to-NAME]: text"
    return (
        f"Some of {FILE} was not sent:\n\n{listed}\n\n"
        f"A message is one line, `{form}`; further lines of it are indented. Write what matters again."
    )


def _left(file: ChatFile, item: Item, author: _Author) -> str:
    """What the person is told of the rest of a file that is not sent."""
    said = "was stopped" if author.stopped else f"has written {MOST_HEARD} messages into {FILE} in one run"
    return f"{file.writer} {said}. From line {item.line} on, {file.top}/{FILE} is kept and not sent."


def _unsent(error: WindlassError) -> str:
    return f"was not sent: {error} {error.hint}".strip()
