"""The journal for those who follow it: each reader asks for the events after the last one it has seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from windlass.core.nouns.event import Event
from windlass.core.nouns.message import Message
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading
from windlass.core.workflows.instance import Instance
from windlass.engine.views.event_projects import project_of_row, projects_of

PAGE = 200
MOST_PASSED = 2000
"""Events that are looked at in one go, however few of them are sent."""
FEW = 8
"""Events that are in memory at once: some carry a megabyte."""
LARGEST_PIECE = 256_000
"""Bytes after which a piece takes no more events: for a slow subscriber, one piece waits in memory."""
MOST_SAID = 1000
"""Messages of an instance that are read at once."""


@dataclass(frozen=True, slots=True)
class EventFilter:
    """The events that a reader sees: of one project, or of all; without rows that an agent may not see."""

    agent: str = ""
    project: str = ""
    instance: str = ""

    def covers(self, event: Event, store: Reading) -> bool:
        """Whether the event is about this reader's project. What is of no project is for people."""
        found = {""} if not self.project else projects_of(event, store)
        return self.project in found or (found == {""} and not self.agent)

    def of(self, event: Event, store: Reading) -> Event:
        """The event, without the rows that this reader may not see."""
        if not self.agent:
            return event
        return replace(event, became=tuple(row for row in event.became if self._may_see(row, store)))

    def _may_see(self, row: Mapping[str, Any], store: Reading) -> bool:
        match row["noun"]:
            case "message":
                mine = self.agent in (row["sender"], *row["to"])
                home = f"@{self.instance}" if self.instance else "main"
                return mine or (not row["direct"] and row["project"] == self.project and row["channel"] == home)
            case "delivery":
                return bool(row["reader"] == self.agent)
            case "document":
                folder, _, rest = str(row["name"]).partition("/")
                own = rest.partition("/")[0] == (self.instance or "main")
                return row["project"] == self.project and (folder != "context" or own)
        return project_of_row(row, store) == self.project


class Journal:
    """Answers what happened after an event."""

    def __init__(self, ports: Ports) -> None:
        self.store = ports.store

    async def last_seq(self) -> int:
        """The number of the newest event."""
        return await self.store.read(lambda store: store.last_seq())

    async def piece(self, after: int, seen: EventFilter, encode: Callable[[Event], bytes]) -> tuple[int, bytes, bool]:
        """The number of the last event that was read, a page of encoded events that the reader sees, and a flag.

        A page has fewer events if they are large. The flag says that the reader does not see the last one.
        """
        return await self.store.read(partial(_piece, after, seen, encode))

    async def sent(self, after: int) -> tuple[int, list[tuple[str, Message]]]:
        """The number of the last event that was read; and the messages sent after an event, once for each reader."""
        return await self.store.read(partial(_sent, after))

    async def said_in(self, instance: Instance, after: int) -> list[Message]:
        """The messages in an instance's channel after one of them, the oldest first; at most MOST_SAID."""
        where, channel = instance.project, instance.channel
        return await self.store.read(
            lambda store: store.said(where, channel=channel, after=after, limit=MOST_SAID, newest=False)
        )


def _piece(after: int, seen: EventFilter, encode: Callable[[Event], bytes], store: Reading) -> tuple[int, bytes, bool]:
    told: list[bytes] = []
    room, passed, unseen = LARGEST_PIECE, 0, False
    while len(told) < PAGE and passed < MOST_PASSED and (events := store.events(after=after, limit=FEW)):
        for event in events:
            after = event.seq
            unseen = not seen.covers(event, store)
            if unseen:
                continue
            told.append(encode(seen.of(event, store)))
            room -= len(told[-1])
            if room < 0:
                return after, b"".join(told), False
        passed += len(events)
    return after, b"".join(told), unseen


def _sent(after: int, store: Reading) -> tuple[int, list[tuple[str, Message]]]:
    events = store.events(after=after, limit=PAGE)
    sent = [store.find(Message, event.subject) for event in events if event.kind == "message.sent"]
    owed = [(reader, message) for message in sent if message for reader in dict.fromkeys(message.to)]
    return (events[-1].seq if events else after), owed
