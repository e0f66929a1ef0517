"""The chat tick: what is written into chat.md is sent, and what is said elsewhere appears there.

Each file has its turn, in which it is read on (`hearing`) and added to. What we write ourselves is written down first,
as owed; it is known by its digest when it is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from windlass.core.messages.members import Speaker
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.project import Project
from windlass.core.ports import Ports
from windlass.engine.bell import Bell
from windlass.engine.chatfiles import files
from windlass.engine.chatfiles.files import ChatFile
from windlass.engine.chatfiles.reader import FILE, ChatReader, Rest
from windlass.engine.chatfiles.shared_files import Pages
from windlass.engine.messages.talk import Talk
from windlass.engine.troubles import Troubles

EVERY = 2.0
"""Seconds after which every file is looked at, whether or not the kernel told of a change."""
FAREWELL = 60.0
"""Seconds that the removal of a worktree may take."""


class Chat:
    """Reads and writes the chat files of all projects and worktrees."""

    def __init__(self, ports: Ports, bell: Bell, talk: Talk, pages: Pages, troubles: Troubles) -> None:
        self.ports = ports
        self.store = ports.store
        self.chats = ports.chats
        self.clock = ports.clock
        self.pages = pages
        self.troubles = troubles
        self.ear = bell.ear()
        """Also set when the kernel tells of a change."""
        self.hearing = ChatReader(ports, bell, talk, pages.stillness, self._stir)
        self._stirred: set[str] = set()
        self._follows: dict[str, Callable[[], None] | None] = {}
        self._leaving: dict[str, float] = {}
        """Agents whose worktrees are about to go, and since when: nothing is written there any more."""
        self._seen, self._looked = -1, float("-inf")
        talk.before_sending(self.catch_up)

    async def tick(self) -> bool:
        """Look at the files that have changed, and show in each what is new in the log."""
        last, now = await self.store.read(lambda store: store.last_seq()), self.clock.monotonic()
        everything = now - self._looked >= EVERY
        known = await files.corners(self.ports)
        self.hearing.keep(known)
        known = self._staying(known)
        self._attend_to(known)
        stirred, self._stirred = self._stirred, set()
        newest = await self.store.read(partial(files.newest, {each.project.id for each in known}))
        for corner in known:
            look = everything or corner.top in stirred or self._follows.get(corner.top) is None
            with self.troubles.noted("chat"):
                async with self.hearing.kept(corner).lock:
                    if corner.writer not in self._leaving:
                        await self._attend(corner, newest[corner.project.id], look=look)
        await self._refresh(known, stirred, everything=last != self._seen or everything)
        self._seen, self._looked = last, now if everything else self._looked
        return False

    async def _refresh(self, known: list[ChatFile], stirred: set[str], *, everything: bool) -> None:
        """Bring up to date what the projects share."""
        mirrored = {each.top for each in known if each.agent is None}
        for project in await self.store.read(lambda store: store.projects()):
            if everything or project.path in stirred:
                with self.troubles.noted("chat"):
                    stir = partial(self._stir, project.path)
                    await self.pages.refresh(project, stir, mirrored=project.path in mirrored)

    async def collect(self, agent: Agent) -> None:
        """Take in all that an agent has written, because its worktree is about to go."""
        self._leaving[agent.id] = self.clock.monotonic()
        known = await files.corners(self.ports)
        for corner in (each for each in known if each.agent and each.agent.id == agent.id):
            await self.hearing.take_in(corner, gone=True)
            self.hearing.forget(corner)
        self._leaving[agent.id] = self.clock.monotonic()

    async def catch_up(self, speaker: Speaker, project: Project, gone: bool) -> None:
        """Take in what someone has written who says something in another way now, or has gone."""
        for corner in await files.of_speaker(self.ports, speaker, project):
            await self.hearing.take_in(corner, gone=gone)

    def _staying(self, known: list[ChatFile]) -> list[ChatFile]:
        """Without those that are about to go. Who is gone, and comes back, is there again."""
        there, now = {each.writer for each in known}, self.clock.monotonic()
        self._leaving = {
            name: since for name, since in self._leaving.items() if name in there and now - since < FAREWELL
        }
        return [each for each in known if each.writer not in self._leaving]

    def close(self) -> None:
        """Listen no longer."""
        self._attend_to([])

    def _attend_to(self, known: list[ChatFile]) -> None:
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

    async def _attend(self, corner: ChatFile, newest: int, *, look: bool) -> None:
        """Read a file if it may have changed, and add to it if anything was said since: `newest` is the last."""
        kept, place = self.hearing.kept(corner), await self.hearing.place(corner)
        is_new = corner.agent is not None and kept.told is None
        if is_new:  # from now on it is read: what is said while we are away is left there
            await self.chats.append(corner.top, FILE, "")
        rest = await self.hearing.turn(corner) if look or place.owed else Rest.NOTHING
        if rest is Rest.MORE:
            self._stir(corner.top)
        is_behind = kept.told != newest or bool((await self.hearing.place(corner)).owed)
        if rest is Rest.NOTHING and is_behind and await self._show(corner, newest):
            kept.told = newest

    async def _show(self, corner: ChatFile, newest: int) -> bool:
        """Add what was said elsewhere: what is owed from before, because it never got there, and what is new.

        Returns whether that is all there is: then all up to the newest is behind it, whomever it was for.
        """
        place = before = await self.hearing.place(corner)
        said = await self.store.read(partial(files.unshown, corner, place))
        owed = await self.store.read(partial(files.found, [key for _, key in place.owed]))
        new = [each for each in said if files.shows(corner, each)]
        more = len(said) == files.AT_ONCE or len(place.owed) >= files.AT_ONCE
        shown = max(place.shown, *map(files.number, said[-1:]), 0 if more else newest)
        lines = [(*files.line_of(each), each.id) for each in (*owed, *new)]
        place = replace(place, shown=shown, owed=tuple((digest, key) for _, digest, key in lines))
        if new or shown // files.AT_ONCE > before.shown // files.AT_ONCE:
            await self.hearing.save(corner, place)
        self.hearing.kept(corner).place = place
        text, read = "".join(text for text, _, _ in lines), 0 if place.skipping else place.offset
        if text and await self.chats.append(corner.top, FILE, text, read):
            self._stir(corner.top)
        if len(said) == files.AT_ONCE:
            self.ear.set()
        return not (more or len(place.owed) >= files.AT_ONCE)
