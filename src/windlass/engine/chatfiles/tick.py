"""The chat tick: lines in chat.md are sent as messages, and other messages are added to the file.

Each file has its turn, in which it is read on (`reader`) and added to. What is added is noted as owed before: its
digest tells the reader that it is ours. A daemon that finds a stored position owes all that was said after it, and so
knows again what the one before it has added.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from functools import partial

from windlass.core.address import HUMAN
from windlass.core.messages.members import Speaker
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.message import Message
from windlass.core.nouns.project import Project
from windlass.core.ports import Ports
from windlass.engine.bell import Bell
from windlass.engine.chatfiles import files
from windlass.engine.chatfiles.files import ChatFile
from windlass.engine.chatfiles.known_file import Remainder
from windlass.engine.chatfiles.reader import FILE, ChatReader
from windlass.engine.chatfiles.shared_files import Pages
from windlass.engine.messages.talk import Talk
from windlass.engine.troubles import Troubles

EVERY = 2.0
"""Seconds after which files are looked at of which the kernel does not tell: pages are anywhere in a project."""
SWEEP = 30.0
"""Seconds after which every file is looked at, whether or not anything told of a change."""
FAREWELL = 60.0
"""Seconds that the removal of a worktree may take."""
_PLACES = ("agent.", "document.", "instance.", "project.", "run.started")
"""Events after which there may be other files."""


class Chat:
    """Reads and writes the chat files of all projects and worktrees."""

    def __init__(self, ports: Ports, bell: Bell, talk: Talk, pages: Pages, troubles: Troubles) -> None:
        self.ports = ports
        self.store = ports.store
        self.chats = ports.chats
        self.clock = ports.clock
        self.pages = pages
        self.troubles = troubles
        self.ear = bell.ear("message.", *_PLACES)
        """Also set when the kernel tells of a change."""
        self._places, self._said = bell.ear(*_PLACES), bell.ear("message.")
        self.reader = ChatReader(ports, talk, pages.quiet, self._note_change)
        self._files: list[ChatFile] = []
        self._projects: list[Project] = []
        self._mirrors: set[str] = set()
        self._newest: dict[str, int] = {}
        """By project: the number of its last message."""
        self._changed: set[str] = set()
        self._follows: dict[str, Callable[[], None] | None] = {}
        self._leaving: dict[str, float] = {}
        """Agents whose worktrees are about to go, and since when: nothing is written there any more."""
        self._looked = self._refreshed = float("-inf")
        talk.before_sending(self.catch_up)

    async def tick(self) -> bool:
        """Look at the files that have changed, and show in each what is new in the log."""
        now = self.clock.monotonic()
        everything = now - self._looked >= SWEEP
        self._looked = now if everything else self._looked
        due = now - self._refreshed >= EVERY
        self._refreshed = now if due else self._refreshed
        moved = everything or self._places.is_set() or (due and self._mirrored() != self._mirrors)
        if moved:
            self._places.clear()
            await self._find_files()
        changed, self._changed = self._changed, set()
        said = moved or self._said.is_set() or any(self._is_behind(file, changed) for file in self._files)
        self._said.clear()
        unshown = await self._look_at_log() if said and self._files else {}
        barred = any(self.reader.kept(file).barred for file in self._files)
        running = await self.store.read(lambda store: {run.agent for run in store.live_runs()}) if barred else set()
        for file in self._staying():
            look = everything or file.top in changed or self._follows.get(file.top) is None
            cared_for = file.writer in (str(HUMAN), *running) or file.top in changed
            if look or file.mark in unshown or self.reader.kept(file).owes:
                with self.troubles.noted("chat"):
                    async with self.reader.kept(file).lock:
                        if file.writer not in self._leaving:
                            await self._update(file, unshown.get(file.mark), look=look, cared_for=cared_for)
        await self._refresh(changed, everything=said or due, anew=moved)
        if everything:
            await self.reader.save_all(self._files)
        return False

    def _is_behind(self, file: ChatFile, changed: Container[str]) -> bool:
        """Whether a file did not show all, and may take it now."""
        kept = self.reader.kept(file)
        return kept.behind and (file.top in changed or not kept.barred)

    async def _find_files(self) -> None:
        """Find out which files there are, and follow their folders."""
        self._projects, known = await files.chat_files(self.ports)
        await self.reader.save_all(file for file in self._files if file not in known)
        self.reader.keep(known)
        self._files = known
        self._mirrors = self._mirrored()
        self._watch(self._staying())

    def _mirrored(self) -> set[str]:
        """The projects that were set up for a file of their own; no event tells of that."""
        return {project.path for project in self._projects if self.ports.workdirs.has_mirrors(project.path)}

    async def _look_at_log(self) -> dict[str, list[Message]]:
        """The messages that each file has to show, by its mark; only those of files that are behind."""
        known = [(file, await self.reader.position(file)) for file in self._files]
        self._newest, found = await self.store.read(partial(files.look_at_log, known))
        return {
            file.mark: found[file.mark]
            for file, _ in known
            if found[file.mark] or self.reader.kept(file).told != self._newest[file.project.id]
        }

    async def _refresh(self, changed: set[str], *, everything: bool, anew: bool) -> None:
        mirrored = {file.top for file in self._files if file.agent is None}
        for project in self._projects:
            if everything or project.path in changed:
                with self.troubles.noted("chat"):
                    look_again = partial(self._note_change, project.path)
                    await self.pages.refresh(project, look_again, mirrored=project.path in mirrored, anew=anew)

    async def collect(self, agent: Agent) -> None:
        """Send all that an agent has written, because its worktree is about to be removed."""
        self._leaving[agent.id] = self.clock.monotonic()
        _, known = await files.chat_files(self.ports)
        for file in [file for file in known if file.agent and file.agent.id == agent.id]:
            await self.reader.take_in(file, gone=True)
            await self._keep_rest(file)
            await self.reader.save_all([file])
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

    def _staying(self) -> list[ChatFile]:
        """The files that stay. An agent that has gone and comes back has one again."""
        there, now = {file.writer for file in self._files}, self.clock.monotonic()
        self._leaving = {
            name: since for name, since in self._leaving.items() if name in there and now - since < FAREWELL
        }
        return [file for file in self._files if file.writer not in self._leaving]

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

    async def _update(self, file: ChatFile, said: Sequence[Message] | None, *, look: bool, cared_for: bool) -> None:
        """Read a file if it may have changed, and add to it what was said since, if that was looked for.

        What could not be added is tried again if someone may have put the file right: it is `cared_for`.
        """
        kept = self.reader.kept(file)
        kept.behind = kept.behind or said is not None
        if file.agent and kept.told is None and (cared_for or not kept.barred):
            await self._append(file, "")  # from now on it is read: what is said meanwhile is left there
        rest = await self.reader.turn(file) if look or kept.owes else Remainder.NOTHING
        if rest is Remainder.MORE:
            self._note_change(file.top)
        if rest is not Remainder.NOTHING or (kept.barred and not cared_for) or not (kept.behind or kept.owes):
            return
        if await self._show(file, said) and said is not None:
            kept.told, kept.behind = self._newest[file.project.id], False

    async def _show(self, file: ChatFile, looked: Sequence[Message] | None) -> bool:
        """Add to a file what it owes, and what was said since. Returns whether the file then shows all.

        Its position is stored now and then: what was said after it is owed by a later daemon, and known again."""
        said = looked or ()
        kept, before = self.reader.kept(file), await self.reader.position(file)
        more = len(said) == files.AT_ONCE or len(before.owed) >= files.AT_ONCE
        newest = self._newest[file.project.id] if looked is not None and not more else 0
        kept.position = position = files.owing(file, before, said, newest)
        if kept.unsaved > files.AT_ONCE // 2 or (position.owed and kept.saved < 0):
            await self.reader.save(file, position)
        at_hand = {message.id: message for message in said}
        if any(key not in at_hand for _, key in position.owed):
            at_hand |= {message.id: message for message in await self.store.read(partial(files.owed, position))}
        lines = [files.line_of(at_hand[key])[0] for _, key in position.owed if key in at_hand]
        text, read = "".join(lines), 0 if position.skipping else position.offset
        if text and await self._append(file, text, read) and not self.reader.pass_own(file, text):
            self._note_change(file.top)
        if more:
            self._said.set()
            self.ear.set()
        return not more

    async def _append(self, file: ChatFile, text: str, read: int = 0) -> bool:
        kept = self.reader.kept(file)
        kept.barred = True
        added = await self.chats.append(file.top, FILE, text, read)
        kept.barred = False
        return added
