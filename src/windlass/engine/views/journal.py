"""The journal, as those read it who follow it: each reader asks for the events after the last one it has seen."""

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
from windlass.engine.views.event_projects import concerns

PAGE = 200
MOST_PASSED = 2000
"""Events that are looked at in one go, however few of them are sent."""
FEW = 8
"""Events that are in memory at once: some carry a megabyte."""
LARGEST_PIECE = 256_000
"""Bytes of events after which no more are put into one piece. One piece waits for a subscriber that does not read."""
MOST_SAID = 1000
"""Messages of an instance that are read at once."""


@dataclass(frozen=True, slots=True)
class EventFilter:
    """The part of the journal that a reader sees: one project's, or all; an agent nothing that is for others alone."""

    agent: str = ""
    project: str = ""
    instance: str = ""

    def covers(self, event: Event, store: Reading) -> bool:
        """Whether the event is about this reader's project."""
        return not self.project or concerns(event, self.project, store)

    def of(self, event: Event) -> Event:
        """The event, without the rows that this reader may not see."""
        if not self.agent:
            return event
        return replace(event, became=tuple(row for row in event.became if self._may_see(row)))

    def _may_see(self, row: Mapping[str, Any]) -> bool:
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
            case "task" | "agent" | "change" | "instance":
                return bool(row["project"] == self.project)
        return True


class Journal:
    """Answers what happened after an event."""

    def __init__(self, ports: Ports) -> None:
        self.store = ports.store

    async def last_seq(self) -> int:
        """The number of the newest event."""
        return await self.store.read(lambda store: store.last_seq())

    async def piece(self, after: int, seen: EventFilter, encode: Callable[[Event], bytes]) -> tuple[int, bytes, bool]:
        """The next events that a reader sees, encoded one by one, and the number of the last that was looked at.

        A page of them, or fewer where they are large. The third is true if the last one is not among them.
        """
        return await self.store.read(partial(_piece, after, seen, encode))

    async def sent(self, after: int) -> tuple[int, list[tuple[str, Message]]]:
        """The messages sent after an event, each with each of its readers; and the last event that was looked at."""
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
            told.append(encode(seen.of(event)))
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
