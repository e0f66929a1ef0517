"""The chat tick: lines in chat.md are sent as messages, and other messages are added to the file.

Each file has its turn, in which it is read on (`reader`) and added to. A message is stored as owed before it is added;
its digest tells the reader that it is ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from windlass.core.address import HUMAN
from windlass.core.messages.members import Speaker
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.project import Project
from windlass.core.ports import Ports
from windlass.engine.bell import Bell
from windlass.engine.chatfiles import files
from windlass.engine.chatfiles.files import ChatFile
from windlass.engine.chatfiles.reader import FILE, ChatReader, Remainder
from windlass.engine.chatfiles.shared_files import Pages
from windlass.engine.messages.log import place
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
        self.reader = ChatReader(ports, talk, pages.quiet, self._note_change)
        self._changed: set[str] = set()
        self._follows: dict[str, Callable[[], None] | None] = {}
        self._leaving: dict[str, float] = {}
        """Agents whose worktrees are about to go, and since when: nothing is written there any more."""
        self._seen, self._looked = -1, float("-inf")
        talk.before_sending(self.catch_up)

    async def tick(self) -> bool:
        """Look at the files that have changed, and show in each what is new in the log."""
        last, now = await self.store.read(lambda store: store.last_seq()), self.clock.monotonic()
        everything = now - self._looked >= EVERY
        known = await files.chat_files(self.ports)
        self.reader.keep(known)
        known = self._staying(known)
        self._watch(known)
        changed, self._changed = self._changed, set()
        newest = await self.store.read(partial(files.newest, {file.project.id for file in known}))
        barred = any(self.reader.kept(file).barred for file in known)
        running = await self.store.read(lambda store: {run.agent for run in store.live_runs()}) if barred else set()
        for file in known:
            look = everything or file.top in changed or self._follows.get(file.top) is None
            with self.troubles.noted("chat"):
                async with self.reader.kept(file).lock:
                    if file.writer not in self._leaving:
                        cared_for = file.writer in (str(HUMAN), *running) or file.top in changed
                        await self._update(file, newest[file.project.id], look=look, cared_for=cared_for)
        await self._refresh(known, changed, everything=last != self._seen or everything)
        self._seen, self._looked = last, now if everything else self._looked
        return False

    async def _refresh(self, known: list[ChatFile], changed: set[str], *, everything: bool) -> None:
        mirrored = {file.top for file in known if file.agent is None}
        for project in await self.store.read(lambda store: store.projects()):
            if everything or project.path in changed:
                with self.troubles.noted("chat"):
                    look_again = partial(self._note_change, project.path)
                    await self.pages.refresh(project, look_again, mirrored=project.path in mirrored)

    async def collect(self, agent: Agent) -> None:
        """Send all that an agent has written, because its worktree is about to be removed."""
        self._leaving[agent.id] = self.clock.monotonic()
        known = await files.chat_files(self.ports)
        for file in [file for file in known if file.agent and file.agent.id == agent.id]:
            await self.reader.take_in(file, gone=True)
            await self._keep_rest(file)
            self.reader.forget(file)
        self._leaving[agent.id] = self.clock.monotonic()

    async def _keep_rest(self, file: ChatFile) -> None:
        """Keep a file of which something was not sent beside the output of its run, and tell where."""
        position = await self.reader.position(file)
        kept = f"{self.ports.home}/runs/{position.muted}/chat.md"
        if position.muted and await self.chats.keep(file.top, FILE, kept):
            words = f"{file.writer} is finished. Its {FILE}, of which not all was sent, is kept as {kept}."
            await self.reader.save(file, replace(position, muted=""), unsent=words)

    async def catch_up(self, speaker: Speaker, project: Project, gone: bool) -> None:
        """Send what someone has written who now speaks in another way, or has gone."""
        for file in await files.of_speaker(self.ports, speaker, project):
            await self.reader.take_in(file, gone=gone)

    def _staying(self, known: list[ChatFile]) -> list[ChatFile]:
        """The files that stay. An agent that has gone and comes back has one again."""
        there, now = {file.writer for file in known}, self.clock.monotonic()
        self._leaving = {
            name: since for name, since in self._leaving.items() if name in there and now - since < FAREWELL
        }
        return [file for file in known if file.writer not in self._leaving]

    def close(self) -> None:
        """Stop watching folders."""
        self._watch([])

    def _watch(self, known: list[ChatFile]) -> None:
        """Watch the folders of these files, and no others."""
        tops = {file.top for file in known}
        for top in self._follows.keys() - tops:
            if end := self._follows.pop(top):
                end()
        for top in tops:
            if self._follows.get(top) is None:
                with self.troubles.noted("chat"):
                    self._follows[top] = self.chats.follow(top, partial(self._note_change, top))

    def _note_change(self, top: str) -> None:
        self._changed.add(top)
        self.ear.set()

    async def _update(self, file: ChatFile, newest: int, *, look: bool, cared_for: bool) -> None:
        """Read a file if it may have changed, and add to it if anything was said since: `newest` is the last.

        What could not be added is tried again if someone may have put the file right: it is `cared_for`.
        """
        kept, position = self.reader.kept(file), await self.reader.position(file)
        is_new = file.agent is not None and kept.told is None
        if is_new and (cared_for or not kept.barred):  # from now on it is read: what is said meanwhile is left there
            await self._append(file, "")
        rest = await self.reader.turn(file) if look or position.owed else Remainder.NOTHING
        if rest is Remainder.MORE:
            self._note_change(file.top)
        is_behind = kept.told != newest or bool((await self.reader.position(file)).owed)
        if kept.barred and not cared_for:
            return
        if rest is Remainder.NOTHING and is_behind and await self._show(file, newest):
            kept.told = newest

    async def _show(self, file: ChatFile, newest: int) -> bool:
        """Add messages to a file: those that are owed from before, and new ones. Returns whether the file shows all."""
        position = before = await self.reader.position(file)
        said = await self.store.read(partial(files.unshown, file, position))
        owed = await self.store.read(partial(files.owed, position))
        new = [message for message in said if files.shows(file, message)]
        more = len(said) == files.AT_ONCE or len(position.owed) >= files.AT_ONCE
        shown = max(position.shown, *(place(message.id) for message in said[-1:]), 0 if more else newest)
        lines = [(*files.line_of(message), message.id) for message in (*owed, *new)]
        position = replace(position, shown=shown, owed=tuple((digest, key) for _, digest, key in lines))
        if new or shown // files.AT_ONCE > before.shown // files.AT_ONCE:
            await self.reader.save(file, position)
        self.reader.kept(file).position = position
        text, read = "".join(text for text, _, _ in lines), 0 if position.skipping else position.offset
        if text and await self._append(file, text, read):
            self._note_change(file.top)
        if len(said) == files.AT_ONCE:
            self.ear.set()
        return not (more or len(position.owed) >= files.AT_ONCE)

    async def _append(self, file: ChatFile, text: str, read: int = 0) -> bool:
        kept = self.reader.kept(file)
        kept.barred = True
        added = await self.chats.append(file.top, FILE, text, read)
        kept.barred = False
        return added
