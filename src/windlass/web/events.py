"""The event stream, from any number, always following."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

from starlette.responses import Response, StreamingResponse

from windlass.core import codec
from windlass.core.ports import Reading
from windlass.engine import Engine
from windlass.web import shapes, wire
from windlass.web.call import Call

PAGE = 200
FEW = 8
"""Events that are in memory at once: some carry a megabyte."""
LARGEST_PIECE = 256_000
"""Bytes of events after which no more are put into one piece. One piece waits for a subscriber that does not read."""


async def stream(call: Call) -> Response:
    """Server-sent events. Each subscriber reads the journal at its own pace, so a slow one costs nobody else."""
    last = await call.engine.ports.store.read(lambda store: store.last_seq())
    since = wire.number(call.request, "since", last)
    return StreamingResponse(_follow(call.engine, since), media_type="text/event-stream")


async def _follow(engine: Engine, after: int) -> AsyncIterator[bytes]:
    ear = engine.bell.ear(output=True)
    yield b"id: %d\n\n" % after  # so that a reader who is cut off before the first event knows where it was
    while not engine.bell.silent:
        ear.clear()
        while True:
            after, piece = await engine.ports.store.read(partial(_piece, after))
            if not piece:
                break
            yield piece
        await ear.wait()


def _piece(after: int, store: Reading) -> tuple[int, bytes]:
    """The next events, as they are sent, and the number of the last of them: a page, or less where they are large."""
    told: list[bytes] = []
    room = LARGEST_PIECE
    while len(told) < PAGE and (events := store.events(after=after, limit=FEW)):
        for event in events:
            told.append(b"id: %d\ndata: %s\n\n" % (event.seq, codec.encode(shapes.event(event))))
            after = event.seq
            room -= len(told[-1])
            if room < 0:
                return after, b"".join(told)
    return after, b"".join(told)
