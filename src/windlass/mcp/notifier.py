"""Tell listeners that there is a new message for them; they read the message themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from windlass.core.nouns.message import Message
from windlass.engine import Engine

PATIENCE = 0.5
"""Seconds that telling one listener may take. One that does not read is dropped, so that the others need not wait."""
AGAIN = 1.0
"""Seconds until a failed attempt is repeated."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Listener:
    """A client that is told of messages to its reader; `run` is empty for a person's."""

    reader: str
    run: str
    tell: Callable[[Message], Awaitable[None]]
    end: Callable[[], None]
    """Called when the listener is dropped."""


@dataclass(slots=True)
class Notifier:
    """Follows the journal for as long as there are listeners."""

    engine: Engine
    _listeners: dict[Listener, None] = field(default_factory=dict)
    _owed: list[tuple[Listener, Message]] = field(default_factory=list)
    """The messages that listeners have not been told of yet."""
    _following: asyncio.Task[None] | None = None

    async def add(self, listener: Listener) -> None:
        """Tell a listener of every message from now on."""
        after = await self.engine.journal.last_seq()
        self._listeners[listener] = None
        if self._following is None or self._following.done():
            self._following = asyncio.create_task(self._follow(after))

    def has(self, listener: Listener) -> bool:
        return listener in self._listeners

    def drop(self, listener: Listener) -> None:
        """Stop telling a listener."""
        if listener in self._listeners:
            del self._listeners[listener]
            listener.end()

    async def close(self) -> None:
        """Stop, because the daemon leaves. Listeners are not ended, so that they go on with the next daemon."""
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
                while (page := await self.engine.journal.sent(after))[0] > after:
                    after, sent = page
                    for reader, message in sent:
                        readers = (listener for listener in self._listeners if listener.reader == reader)
                        self._owed += [(listener, message) for listener in readers]
                    await self._tell()
                await self._tell()
                await self._drop_ended()
            except Exception as error:  # noqa: BLE001 - one failure must not end the news of all listeners
                self.engine.troubles.report("news", error)
                failed = True
            with suppress(TimeoutError):
                await asyncio.wait_for(ear.wait(), AGAIN if failed or self._owed else None)

    async def _tell(self) -> None:
        """Tell what is owed. A message whose listener fails stays owed, and does not hold up the others."""
        owed, self._owed = self._owed, []
        for listener, message in owed:
            try:
                if listener in self._listeners and not await self._told(listener, message):
                    self.drop(listener)
            except Exception as error:  # noqa: BLE001 - the failure of one listener does not concern the others
                self.engine.troubles.report("news", error)
                self._owed.append((listener, message))

    async def _drop_ended(self) -> None:
        """Drop the listeners whose runs have ended, whether or not they closed their session."""
        live = await self._live_runs()
        for listener in [each for each in self._listeners if each.run and each.run not in live]:
            self.drop(listener)

    async def _told(self, listener: Listener, message: Message) -> bool:
        if listener.run and listener.run not in await self._live_runs():
            return False
        try:
            async with asyncio.timeout(PATIENCE):
                await listener.tell(message)
        except Exception:  # noqa: BLE001 - one broken listener is dropped, and the others are told
            return False
        return True

    async def _live_runs(self) -> set[str]:
        return {run.id for run in await self.engine.status.live_runs()}
