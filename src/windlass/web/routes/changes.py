"""Changes: the queue, receipts, and undoing."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from windlass.core import codec
from windlass.core.errors import Conflict
from windlass.core.gate.rules import place_in_line
from windlass.core.nouns.change import Change
from windlass.core.nouns.document import Document
from windlass.engine.records.closing import learned_in
from windlass.web import http_io, views
from windlass.web.request import Call
from windlass.web.routes.reviews import said


async def queue(call: Call) -> Response:
    """The line in its order, and whether it moves."""
    project, store = await call.project(), call.engine.ports.store
    found = sorted(await store.read(lambda store: store.changes()), key=place_in_line)
    if http_io.flag(call.request, "all"):
        found += await store.read(lambda store: store.changes(ended=True))
    projects = [each for each in await store.read(lambda store: store.projects()) if project in ("", each.id)]
    paused = {each.id: each.halt for each in projects}
    items = [_shaped(call, each, paused[each.project]) for each in found if each.project in paused]
    still = [views.pause(each) for each in projects if each.paused]
    red = [views.red(each) for each in projects if each.red]
    return http_io.answer({"as_of": call.now, "paused": still, "red": red, "items": items})


def _shaped(call: Call, change: Change, paused: str) -> dict[str, Any]:
    return views.change(change, now=call.now, paused="" if change.ended else paused)


async def _answer(call: Call, change: Change, *, status: int = 200) -> Response:
    return http_io.answer(_shaped(call, change, await call.engine.changes.halted(change)), status=status)


async def show(call: Call) -> Response:
    """Where a change stands, and what was said about it."""
    change = await call.engine.changes.get(call.id)
    name = change.checks[-1].document if change.checks else ""
    store = call.engine.ports.store
    kept = await store.read(lambda store: store.find(Document, f"{change.project}/{name}"))
    learned = await store.read(lambda store: store.find(Document, f"{change.project}/{learned_in(change)}"))
    shown = _shaped(call, change, await call.engine.changes.halted(change))
    known = {"head": change.head, "landing": codec.plain(change.landing), "output": kept.body if kept else ""}
    known["learnings"] = learned.body if learned else ""
    return http_io.answer(shown | known | await said(call, change))


async def receipt(call: Call) -> Response:
    """Proof of a landed change."""
    change = await call.engine.changes.get(call.id)
    if change.landing is None:
        raise Conflict(f"{change.id} has not landed; it is {change.state}.", hint="See `windlass queue`.")
    undoing = await call.engine.ports.store.read(lambda store: store.undoing(change.id))
    return http_io.answer(views.receipt(change, change.landing, undoing))


async def undo(call: Call) -> Response:
    """Take a landed change back, through the same checks."""
    return await _answer(call, await call.engine.changes.undo(call.id), status=201)


# ── the line, as people arrange it ───────────────────────────────────────────────────────────────────────────


async def add(call: Call) -> Response:
    """Let a branch of the repository land."""
    given = await http_io.body(call.request)
    branch, title = http_io.text(given, "branch"), http_io.text(given, "title", "")
    return await _answer(call, await call.engine.line.add(http_io.text(given, "path"), branch, title), status=201)


async def drop(call: Call) -> Response:
    """Give a change up."""
    return await _answer(call, await call.engine.line.drop(call.id, await _reason(call)))


async def hold(call: Call) -> Response:
    """Keep a change from landing until a person lets it."""
    return await _answer(call, await call.engine.line.hold(call.id, await _reason(call)))


async def release(call: Call) -> Response:
    """Let a held change go on."""
    return await _answer(call, await call.engine.line.release(call.id))


async def retry(call: Call) -> Response:
    """Try a change again that was refused."""
    return await _answer(call, await call.engine.line.retry(call.id))


async def first(call: Call) -> Response:
    """Let a change be tried before the others."""
    return await _answer(call, await call.engine.line.first(call.id))


async def pause(call: Call) -> Response:
    """Let nothing land until it is resumed."""
    given = await http_io.body(call.request)
    paused = await call.engine.line.pause(http_io.text(given, "path"), _plain(http_io.text(given, "reason", "")))
    return http_io.answer(views.pause(paused))


async def resume(call: Call) -> Response:
    """Let changes land again."""
    given = await http_io.body(call.request)
    return http_io.answer(views.pause(await call.engine.line.resume(http_io.text(given, "path"))))


async def _reason(call: Call) -> str:
    return _plain(http_io.text(await http_io.body(call.request), "reason", ""))


def _plain(text: str) -> str:
    """Someone's words on one line."""
    return " ".join(text.split())
