"""The event stream, from any number, always following."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

from starlette.responses import Response, StreamingResponse

from windlass.core import codec
from windlass.core.event import Event
from windlass.core.ports import Reading
from windlass.engine import Engine
from windlass.web import shapes, wire
from windlass.web.call import Call

PAGE = 200


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
        while events := await engine.ports.store.read(partial(_page, after)):
            for event in events:
                yield b"id: %d\ndata: %s\n\n" % (event.seq, codec.encode(shapes.event(event)))
            after = events[-1].seq
        await ear.wait()


def _page(after: int, store: Reading) -> list[Event]:
    return store.events(after=after, limit=PAGE)
