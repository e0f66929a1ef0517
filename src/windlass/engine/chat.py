"""The chat tick: what is written into chat.md is sent, and what is said elsewhere appears there.

A place is saved after what stands before it was sent. Each line has a key, made of the lines before it: what is read
again after a crash is known by it, and sent once. What we write ourselves is written down first, as owed; it is known
by its digest when it is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from windlass.core.address import HUMAN
from windlass.core.agent import Agent
from windlass.core.chatline import EVERYONE, Entry, Item, Names, Own, Problem, digests, parse
from windlass.core.chats import Place, Slice, found_again
from windlass.core.errors import BadInput, Conflict, NotAllowed, NotFound, WindlassError
from windlass.core.message import Kind
from windlass.core.near import near_miss
from windlass.core.notification import ROOT, write_notification
from windlass.core.ports import Ports
from windlass.core.store import Writing
from windlass.engine import corners
from windlass.engine.bell import Bell
from windlass.engine.corners import Corner
from windlass.engine.pages import QUIET, Pages
from windlass.engine.readers import Speaker
from windlass.engine.talk import Post, Talk
from windlass.engine.troubles import Troubles

FILE = ".windlass/chat.md"
LIMIT = 1_100_000
"""Bytes that are looked at in one go. A message is smaller."""
EVERY = 2.0
"""Seconds after which every file is looked at, whether or not the kernel told of a change."""
FAREWELL = 60.0
"""Seconds that the removal of a worktree may take."""
LOOKS = 5
"""How often we look, at most, whether a message has come to rest before its writer says something else."""
MOST_TOLD = 5
"""How many refused lines a writer is told of at once."""


class Chat:
    """Reads and writes the chat files of all projects and worktrees."""

    def __init__(self, ports: Ports, bell: Bell, talk: Talk, pages: Pages, troubles: Troubles) -> None:
        self.ports = ports
        self.store = ports.store
        self.chats = ports.chats
        self.clock = ports.clock
        self.bell = bell
        self.talk = talk
        self.pages = pages
        self.troubles = troubles
        self.ear = bell.ear()
        """Also set when the kernel tells of a change."""
        self._places: dict[str, Place] = {}
        self._told: dict[str, int] = {}
        """The newest message of the log when all that a file shows was written there."""
        self._stirred: set[str] = set()
        self._follows: dict[str, Callable[[], None] | None] = {}
        self._leaving: dict[str, float] = {}
        """Agents whose worktrees are about to go, and since when: nothing is written there any more."""
        self._lock = asyncio.Lock()
        self._seen, self._looked = -1, float("-inf")
        talk.heed(self.catch_up)

    async def tick(self) -> bool:
        """Look at the files that have changed, and show in each what is new in the log."""
        async with self._lock:
            last, now = await self.store.read(lambda store: store.last_seq()), self.clock.monotonic()
            everything = now - self._looked >= EVERY
            known = self._staying(await corners.corners(self.ports))
            self._attend_to(known)
            stirred, self._stirred = self._stirred, set()
            newest = await self.store.read(partial(corners.newest, {each.project.id for each in known}))
            for corner in known:
                look = everything or corner.top in stirred or self._follows.get(corner.top) is None
                with self.troubles.noted("chat"):
                    await self._attend(corner, newest[corner.project.id], look=look)
            fresh = last != self._seen or everything
            mirrored = {each.top for each in known if each.agent is None}
            for project in await self.store.read(lambda store: store.projects()):
                if fresh or project.path in stirred:
                    with self.troubles.noted("chat"):
                        stir = partial(self._stir, project.path)
                        await self.pages.refresh(project, stir, mirrored=project.path in mirrored)
            self._seen, self._looked = last, now if everything else self._looked
        return False

    async def collect(self, agent: Agent) -> None:
        """Take in all that an agent has written, because its worktree is about to go."""
        async with self._lock:
            known = await corners.corners(self.ports)
            for corner in (each for each in known if each.agent and each.agent.id == agent.id):
                await self._take_all(corner, final=True)
            self._leaving[agent.id] = self.clock.monotonic()

    async def catch_up(self, speaker: Speaker, project: str, gone: bool) -> None:
        """Take in what someone has written who says something in another way now, or has gone."""
        for corner in await corners.of_speaker(self.ports, speaker, project):
            for look in range(LOOKS):
                final = gone or look == LOOKS - 1
                if not self._is_behind(corner) or await self._take_whole(corner, final=final):
                    break
                await asyncio.sleep(QUIET)  # the last message may still grow

    async def _take_whole(self, corner: Corner, *, final: bool) -> bool:
        """The same, of one file as it is now: whether that is all there is, or it can't be told, being replaced."""
        async with self._lock:
            place = await self._place(corner)
            found = self.chats.look(corner.top, FILE, place.offset, LIMIT)
            return found is None or not place.fits(found) or await self._take_all(corner, final=final)

    def _is_behind(self, corner: Corner) -> bool:
        """Whether something of someone else stands in a file that we have not read."""
        place = self._places.get(corner.project.id + corner.key)
        found = self.chats.look(corner.top, FILE, place.offset if place else 0, LIMIT)
        own = {digest for digest, _ in place.owed} if place else {}
        return found is not None and any(digest not in own for _, digest in digests(found.content))

    def _staying(self, known: list[Corner]) -> list[Corner]:
        """Without those that are about to go. Who is gone, and comes back, is there again."""
        there, now = {each.writer for each in known}, self.clock.monotonic()
        self._leaving = {
            name: since for name, since in self._leaving.items() if name in there and now - since < FAREWELL
        }
        return [each for each in known if each.writer not in self._leaving]

    def close(self) -> None:
        """Listen no longer."""
        self._attend_to([])

    def _attend_to(self, known: list[Corner]) -> None:
        """Listen to these folders, and no others."""
        tops = {each.top for each in known}
        for top in [each for each in self._follows if each not in tops]:
            if end := self._follows.pop(top):
                end()
        for top in tops:
            if self._follows.get(top) is None:
                self._follows[top] = self.chats.follow(top, partial(self._stir, top))

    def _stir(self, top: str) -> None:
        self._stirred.add(top)
        self.ear.set()

    async def _attend(self, corner: Corner, newest: int, *, look: bool) -> None:
        """Read a file if it may have changed, and add to it if anything was said since: `newest` is the last."""
        key, place = corner.project.id + corner.key, await self._place(corner)
        if (
            corner.agent and key not in self._told
        ):  # from now on it is read: what is said while we are away is left there
            await self.chats.append(corner.top, FILE, "")
        done = not (look or place.owed) or await self._take_all(corner)
        if (
            done
            and ((await self._place(corner)).owed or self._told.get(key) != newest)
            and await self._show(corner, newest)
        ):
            self._told[key] = newest

    # ── from the file ──

    async def _take_all(self, corner: Corner, *, final: bool = False) -> bool:
        """Read on as far as there is something whole. Returns whether that is all there is."""
        while True:
            before = await self._place(corner)
            done = await self._take(corner, before, final=final)
            if done or before == await self._place(corner):
                return done

    async def _take(self, corner: Corner, place: Place, *, final: bool) -> bool:
        look = partial(self.chats.look, corner.top, FILE)
        found = look(place.offset, LIMIT)
        if found is not None and not place.fits(found):
            if not (final or self._is_still(corner, found)):
                return False
            place = await self._find_again(corner, place)
            found = look(place.offset, LIMIT)
        if found is None or not found.content:
            return True
        names = await self._names(corner)
        items, goes_on = parse(found.content, names, line=place.line, own=[digest for digest, _ in place.owed])
        full = len(found.content) == LIMIT
        if goes_on and items and not isinstance(items[-1], Own):
            goes_on = full or not (final or self._is_still(corner, found))
            items = items[:-1] if goes_on else items
        if place.skipping or (full and not items):
            return await self._skip(corner, place, found)
        if items:
            await self._accept(corner, place, found, items, names)
        end = items[-1].end if items else 0
        return not found.content[end:].strip()

    async def _find_again(self, corner: Corner, place: Place) -> Place:
        """The place in a file that was cut or replaced."""
        look = partial(self.chats.look, corner.top, FILE)
        again = await asyncio.to_thread(found_again, place, lambda offset: look(offset, LIMIT))
        if again != place:
            await self._save(corner, again, [])
        return again

    async def _accept(self, corner: Corner, place: Place, found: Slice, items: list[Item], names: Names) -> None:
        """Send what is said there, tell the writer what could not be, and save how far we are."""
        refused: list[str] = []
        for item in items:
            if isinstance(item, Entry) and (reason := await self._send(corner, item, place.key(item))):
                refused.append(f"line {item.line} {reason}")
            elif isinstance(item, Problem):
                hint = near_miss(item.stranger[:60], [*names.known, str(HUMAN)]) if len(refused) < MOST_TOLD else ""
                refused.append(f"line {item.line} {item.reason}. {hint}".strip())
            place = place.past(item)
        if not refused and any(isinstance(each, Entry) for each in items):
            place = place.forgiven()
        await self._save(corner, place.at(found, items[-1].end), refused)

    async def _skip(self, corner: Corner, place: Place, found: Slice) -> bool:
        """Go past a line that is too long for a message, or past the rest of it."""
        end = (found.content.find(b"\n") if place.skipping else found.content.rfind(b"\n")) + 1
        refused = [] if place.skipping else [f"line {place.line} is longer than a message may be"]
        await self._save(corner, replace(place, skipping=not end).at(found, end or len(found.content)), refused)
        return False

    async def _send(self, corner: Corner, entry: Entry, key: str) -> str:
        """Send a line as its writer. Returns why that is refused, if it is."""
        if corner.agent and entry.sender not in corner.names:
            return f"says that it is from {entry.sender}, and this file is written by {corner.writer}"
        speaker = await self.store.read(partial(corners.speaker_of, corner))
        names = await self.talk.directory.names(corner.project, speaker)
        everyone = EVERYONE in entry.to and EVERYONE not in names
        try:
            kind, body = self._words(entry)
            post = Post(
                body=body,
                project=corner.project.id,
                to=() if everyone else entry.to,
                everyone=everyone,
                kind=kind,
                key=f"{corner.mark} {key}",
                hands_on=corner.agent is not None,
                claims="" if corner.agent or entry.sender == str(HUMAN) else entry.sender,
            )
            await self.talk.put(speaker, post)
        except Conflict:  # its key is nobody else's: it was said before, and other secrets were taken out of it
            return ""
        except (BadInput, NotAllowed, NotFound) as error:
            return f"was not sent: {_said(error)}"
        return ""

    def _words(self, entry: Entry) -> tuple[Kind, str]:
        """What a line says; a task notification is a report, and must be one."""
        if not entry.body.lstrip().startswith(f"<{ROOT}"):
            return Kind.SAY, entry.body
        return Kind.REPORT, write_notification(self.chats.notification(entry.body))

    async def _names(self, corner: Corner) -> Names:
        speaker = await self.store.read(partial(corners.speaker_of, corner))
        known = await self.talk.directory.names(corner.project, speaker)
        instances = {f"@{each.partition('@')[2]}" for each in known if "@" in each}
        return Names(frozenset(known) | instances, corner.names)

    def _is_still(self, corner: Corner, found: Slice) -> bool:
        """Whether a file has not changed for a moment; if it has, we look again."""
        looks = (found.size, hash(found.content), hash(found.before))
        return self.pages.stillness.lasts(corner.top, looks, partial(self._stir, corner.top))

    # ── to the file ──

    async def _show(self, corner: Corner, newest: int) -> bool:
        """Add what was said elsewhere: what is owed from before, because it never got there, and what is new.

        Returns whether that is all there is: then all up to the newest is behind it, whomever it was for.
        """
        place = before = await self._place(corner)
        said = await self.store.read(partial(corners.unshown, corner, place))
        owed = await self.store.read(partial(corners.found, [key for _, key in place.owed]))
        new = [each for each in said if corners.shows(corner, each)]
        more = len(said) == corners.AT_ONCE or len(place.owed) >= corners.AT_ONCE
        shown = max(place.shown, *map(corners.number, said[-1:]), 0 if more else newest)
        lines = [(*corners.line_of(each), each.id) for each in (*owed, *new)]
        place = replace(place, shown=shown, owed=tuple((digest, key) for _, digest, key in lines))
        if new or shown // corners.AT_ONCE > before.shown // corners.AT_ONCE:
            await self._save(corner, place, [])
        self._places[corner.project.id + corner.key] = place
        if lines and await self.chats.append(corner.top, FILE, "".join(text for text, _, _ in lines)):
            self._stir(corner.top)
        if len(said) == corners.AT_ONCE:
            self.ear.set()
        return not (more or len(place.owed) >= corners.AT_ONCE)

    # ── what is remembered ──

    async def _place(self, corner: Corner) -> Place:
        key = corner.project.id + corner.key
        if key not in self._places:
            self._places[key] = corners.revived(*await self.store.read(partial(corners.stored, corner)))
        return self._places[key]

    async def _save(self, corner: Corner, place: Place, refused: list[str]) -> None:
        """Keep the place, and in the same transaction tell the writer what was refused."""
        now, place = self.clock.now(), place.blamed() if refused else place

        def step(store: Writing) -> None:
            corners.save(store, corner, place, now)
            if refused:
                corners.note(store, corner, _told(corner, refused), now, wakes=not place.is_hopeless)

        await self.store.write(step)
        self._places[corner.project.id + corner.key] = place
        if refused:
            self.bell.ring()
        else:
            self.bell.hum()


def _told(corner: Corner, refused: list[str]) -> str:
    more = [f"and {len(refused) - MOST_TOLD} more"] if len(refused) > MOST_TOLD else []
    listed = "\n".join(f"- {each}" for each in (*refused[:MOST_TOLD], *more))
    form = f"[{corner.writer}-to-NAME]: text"
    return (
        f"Some of {FILE} was not sent:\n\n{listed}\n\n"
        f"A message is one line, `{form}`; further lines of it are indented. Write what matters again."
    )


def _said(error: WindlassError) -> str:
    return f"{error} {error.hint}".strip()
