"""The event stream, from any number, always following; and with it, for who wants it, what follows from events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from starlette.responses import Response, StreamingResponse

from windlass.core import codec
from windlass.core.nouns.event import Event
from windlass.core.ports.store import Reading
from windlass.engine import Engine
from windlass.web import caller_context, http_io, views
from windlass.web.derived_events import DerivedEvents
from windlass.web.event_projects import concerns
from windlass.web.request import Call

PAGE = 200
MOST_PASSED = 2000
"""Events that are looked at in one go, however few of them are sent."""
FEW = 8
"""Events that are in memory at once: some carry a megabyte."""
LARGEST_PIECE = 256_000
"""Bytes of events after which no more are put into one piece. One piece waits for a subscriber that does not read."""


@dataclass(frozen=True, slots=True)
class EventFilter:
    """What of the journal someone sees: one project's part, or all; an agent nothing that is for others alone."""

    agent: str = ""
    project: str = ""
    instance: str = ""

    def covers(self, event: Event, store: Reading) -> bool:
        """Whether it happened where this one looks."""
        return not self.project or concerns(event, self.project, store)

    def of(self, event: Event) -> Event:
        """The event, without the rows that are not to be seen."""
        if not self.agent:
            return event
        return replace(event, became=tuple(each for each in event.became if self._may_see(each)))

    def _may_see(self, row: Mapping[str, Any]) -> bool:
        match row["noun"]:
            case "message":
                mine = self.agent in (row["sender"], *row["to"])
                return mine or (not row["direct"] and row["project"] == self.project and self._is_near(row))
            case "delivery":
                return bool(row["reader"] == self.agent)
            case "document":
                folder, _, rest = str(row["name"]).partition("/")
                own = rest.partition("/")[0] == (self.instance or "main")
                return row["project"] == self.project and (folder != "context" or own)
            case "task" | "agent" | "change":
                return bool(row["project"] == self.project)
        return True

    def _is_near(self, message: Mapping[str, Any]) -> bool:
        """Whether it was said where this agent is, and not in another instance."""
        return bool(message["channel"] == (f"@{self.instance}" if self.instance else "main"))


async def stream(call: Call) -> Response:
    """Server-sent events after a number (`since`, or the header Last-Event-ID), or from now on.

    With `path`, only those of the project there; a folder of no project means all. With `feed`, each agent's status and
    files, too. Each subscriber reads the journal at its own pace, so a slow one costs nobody else.
    """
    last = await call.engine.ports.store.read(lambda store: store.last_seq())
    since = http_io.number(call.request, "since", http_io.last_event(call.request, last))
    sight = await _sight(call)
    feed = DerivedEvents(call.engine, sight.project) if http_io.flag(call.request, "feed") else None
    return StreamingResponse(_follow(call.engine, since, sight, feed), media_type="text/event-stream")


async def _sight(call: Call) -> EventFilter:
    if not call.caller.run:
        known = await call.engine.projects.known_at(call.path) if call.path else None
        return EventFilter(project=known.id if known else "")
    who = await caller_context.speaker(call)
    return EventFilter(who.address, who.project, await call.engine.documents.instance(who, ""))


async def _follow(engine: Engine, after: int, sight: EventFilter, feed: DerivedEvents | None) -> AsyncIterator[bytes]:
    ear = engine.bell.ear(output=True)
    yield b"id: %d\n\n" % after  # so that a reader who is cut off before the first event knows where it was
    while not engine.bell.silent:
        ear.clear()
        while True:
            after, piece = await engine.ports.store.read(partial(_piece, after, sight))
            if not piece:
                break
            yield piece
        if feed:
            for line in await feed.news():
                yield b"data: %s\n\n" % codec.encode(line)
            await feed.wait(ear)
        else:
            await ear.wait()


def _piece(after: int, sight: EventFilter, store: Reading) -> tuple[int, bytes]:
    """The next events, as they are sent, and the number of the last of them: a page, or less where they are large.

    Where others happened since than this one sees, the number alone: whoever is cut off goes on from there.
    """
    told: list[bytes] = []
    room = LARGEST_PIECE
    passed, unseen = 0, False
    while len(told) < PAGE and passed < MOST_PASSED and (events := store.events(after=after, limit=FEW)):
        for event in events:
            after = event.seq
            unseen = not sight.covers(event, store)
            if unseen:
                continue
            told.append(b"id: %d\ndata: %s\n\n" % (event.seq, codec.encode(views.event(sight.of(event)))))
            room -= len(told[-1])
            if room < 0:
                return after, b"".join(told)
        passed += len(events)
    return after, b"".join(told) + (b"id: %d\n\n" % after if unseen else b"")
