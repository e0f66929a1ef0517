"""The event stream, from any number, always following; and with it, for who wants it, what follows from events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from starlette.responses import Response, StreamingResponse

from windlass.core import codec
from windlass.core.nouns.event import Event
from windlass.engine import Engine
from windlass.engine.views.journal import EventFilter
from windlass.web import views
from windlass.web.derived_events import DerivedEvents
from windlass.web.request import Call, PlaceQuery, Whole


class EventQuery(PlaceQuery):
    since: Whole | None = None
    feed: bool = False


async def stream(call: Call, given: EventQuery) -> Response:
    """Server-sent events after a number (`since`, or the header Last-Event-ID), or from now on.

    With `path`, only those of the project there; a folder of no project means all. With `feed`, each agent's status and
    files, too. Each subscriber reads the journal at its own pace, so a slow one costs nobody else.
    """
    after = given.since
    if after is None:  # a client that was cut off says where
        number = call.request.headers.get("last-event-id", "").strip()
        is_number = number.isdecimal() and len(number) <= 18
        after = int(number) if is_number else await call.engine.journal.last_seq()
    seen = await _filter(call, given.path)
    feed = DerivedEvents(call.engine, seen.project) if given.feed else None
    return StreamingResponse(_follow(call.engine, after, seen, feed), media_type="text/event-stream")


async def _filter(call: Call, path: str) -> EventFilter:
    if not call.caller.run:
        known = await call.engine.projects.known_at(path) if path else None
        return EventFilter(project=known.id if known else "")
    who = call.caller
    return EventFilter(who.address, who.project, await call.engine.documents.instance(who, ""))


async def _follow(engine: Engine, after: int, seen: EventFilter, feed: DerivedEvents | None) -> AsyncIterator[bytes]:
    ear = engine.bell.ear(output=True)
    try:
        async for piece in _pieces(engine, ear, after, seen, feed):
            yield piece
    finally:
        engine.bell.leave(ear)


async def _pieces(
    engine: Engine, ear: asyncio.Event, after: int, seen: EventFilter, feed: DerivedEvents | None
) -> AsyncIterator[bytes]:
    yield b"id: %d\n\n" % after  # so that a reader who is cut off before the first event knows where it was
    while not engine.bell.silent:
        ear.clear()
        while True:
            after, piece, unseen = await engine.journal.piece(after, seen, _encoded)
            if unseen:
                piece += b"id: %d\n\n" % after  # a reader who is cut off goes on from there
            if not piece:
                break
            yield piece
        if feed:
            for line in await feed.news():
                yield b"data: %s\n\n" % codec.encode(line)
            await feed.wait(ear)
        else:
            await ear.wait()


def _encoded(event: Event) -> bytes:
    return b"id: %d\ndata: %s\n\n" % (event.seq, codec.encode(views.event(event)))
