"""Telling those who listen that there is something new for them. What it is, they read themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from windlass.core.nouns.message import Message
from windlass.core.nouns.run import Run
from windlass.core.ports.store import Reading
from windlass.engine import Engine

PAGE = 100
PATIENCE = 0.5
"""Seconds that telling one may take: one that does not read is told no more, so that the others need not wait."""
AGAIN = 1.0
"""Seconds after which what failed is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Listener:
    """Someone who wants to be told: the reader that it stands for, and its run, if it is one."""

    reader: str
    run: str
    tell: Callable[[Message], Awaitable[None]]
    end: Callable[[], None]
    """Called when it is told no more."""


@dataclass(slots=True)
class Notifier:
    """Follows the journal for as long as someone listens."""

    engine: Engine
    _listeners: dict[Listener, None] = field(default_factory=dict)
    _owed: list[tuple[Listener, Message]] = field(default_factory=list)
    """What is still to be told to whom."""
    _following: asyncio.Task[None] | None = None

    async def add(self, listener: Listener) -> None:
        """Tell someone from now on."""
        after = await self.engine.ports.store.read(lambda store: store.last_seq())
        self._listeners[listener] = None
        if self._following is None or self._following.done():
            self._following = asyncio.create_task(self._follow(after))

    def has(self, listener: Listener) -> bool:
        return listener in self._listeners

    def drop(self, listener: Listener) -> None:
        """Tell someone no more."""
        if listener in self._listeners:
            del self._listeners[listener]
            listener.end()

    async def close(self) -> None:
        """Because we leave: nobody is told that this is the end, so that they go on with the next daemon."""
        self._listeners.clear()
        if self._following is not None:
            self._following.cancel()
            with suppress(asyncio.CancelledError):
                await self._following

    async def _follow(self, after: int) -> None:
        bell = self.engine.bell
        ear = bell.ear()
        while self._listeners and not bell.silent:
            ear.clear()
            failed = False
            try:
                while (page := await self.engine.ports.store.read(partial(_page, after)))[0] > after:
                    after = page[0]
                    self._owe(page[1])
                    await self._tell()
                await self._tell()
                await self._let_go()
            except Exception as error:  # noqa: BLE001 - who listens must not fall silent for one that fails
                self.engine.troubles.report("news", error)
                failed = True
            with suppress(TimeoutError):
                await asyncio.wait_for(ear.wait(), AGAIN if failed or self._owed else None)

    def _owe(self, sent: list[tuple[str, Message]]) -> None:
        self._owed += [(each, message) for reader, message in sent for each in self._listeners if each.reader == reader]

    async def _tell(self) -> None:
        """Tell what is owed. What fails stays owed, and keeps nothing else from being told."""
        owed, self._owed = self._owed, []
        for listener, message in owed:
            try:
                if listener in self._listeners and not await self._told(listener, message):
                    self.drop(listener)
            except Exception as error:  # noqa: BLE001 - the trouble of one is not the others'
                self.engine.troubles.report("news", error)
                self._owed.append((listener, message))

    async def _let_go(self) -> None:
        """Drop those whose runs have ended, whether or not they ever said goodbye."""
        for run in {listener.run for listener in self._listeners if listener.run}:
            if not await self._is_live(run):
                for each in [listener for listener in self._listeners if listener.run == run]:
                    self.drop(each)

    async def _told(self, listener: Listener, message: Message) -> bool:
        if listener.run and not await self._is_live(listener.run):
            return False
        try:
            async with asyncio.timeout(PATIENCE):
                await listener.tell(message)
        except Exception:  # noqa: BLE001 - whatever is wrong with one listener, the others are told
            return False
        return True

    async def _is_live(self, run: str) -> bool:
        found = await self.engine.ports.store.read(lambda store: store.find(Run, run))
        return found is not None and found.live


def _page(after: int, store: Reading) -> tuple[int, list[tuple[str, Message]]]:
    """What came to be owed to whom, and the number of the last event that was looked at."""
    events = store.events(after=after, limit=PAGE)
    owed = []
    for event in events:
        message = store.find(Message, event.subject) if event.kind == "message.sent" else None
        if message is not None:
            owed += [(reader, message) for reader in dict.fromkeys(message.to)]
    return (events[-1].seq if events else after), owed
