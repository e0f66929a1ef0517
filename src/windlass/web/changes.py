"""Changes: the queue, receipts, and undoing."""

from __future__ import annotations

from starlette.responses import Response

from windlass.core import codec
from windlass.core.document import Document
from windlass.core.errors import Conflict
from windlass.web import shapes, wire
from windlass.web.call import Call


async def queue(call: Call) -> Response:
    project = await call.project()
    found = await call.engine.ports.store.read(lambda store: store.changes())
    if wire.flag(call.request, "all"):
        found += await call.engine.ports.store.read(lambda store: store.changes(ended=True))
    now = call.now
    return wire.listing([shapes.change(each, now=now) for each in found if project in ("", each.project)], now=now)


async def show(call: Call) -> Response:
    change = await call.engine.changes.get(call.id)
    name = change.checks[-1].document if change.checks else ""
    kept = await call.engine.ports.store.read(lambda store: store.find(Document, f"{change.project}/{name}"))
    shown = shapes.change(change, now=call.now)
    return wire.answer(shown | {"landing": codec.plain(change.landing), "output": kept.body if kept else ""})


async def receipt(call: Call) -> Response:
    change = await call.engine.changes.get(call.id)
    if change.landing is None:
        raise Conflict(f"{change.id} has not landed; it is {change.state}.", hint="See `windlass queue`.")
    undoing = await call.engine.ports.store.read(lambda store: store.undoing(change.id))
    return wire.answer(shapes.receipt(change, change.landing, undoing))


async def undo(call: Call) -> Response:
    made = await call.engine.changes.undo(call.id)
    return wire.answer(shapes.change(made, now=call.now), status=201)
