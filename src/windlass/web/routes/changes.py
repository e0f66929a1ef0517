"""Changes: the queue, receipts, and undoing."""

from __future__ import annotations

from windlass.core.errors import Conflict
from windlass.core.nouns.change import Change
from windlass.core.nouns.project import halt
from windlass.core.requests import Request
from windlass.web import views
from windlass.web.request import Answer, Call, Folder, ListQuery, PageQuery, PlaceRequest
from windlass.web.routes.reviews import said


class BranchRequest(Request):
    path: Folder
    branch: str
    title: str = ""


class ReasonRequest(Request):
    reason: str = ""


class PauseRequest(PlaceRequest):
    reason: str = ""


async def queue(call: Call, given: ListQuery) -> Answer:
    """The queue in its order, and whether it moves."""
    projects, changes = await call.engine.queue.every(await call.project(given.path), ended=given.all)
    absent = await call.engine.queue.absent()
    halts = {project.id: halt(project, absent.get(project.id), call.now) for project in projects}
    return {
        "as_of": call.now,
        "paused": [views.pause(project) for project in projects if project.paused],
        "gone": [views.gone(project, absent[project.id]) for project in projects if project.id in absent],
        "red": [views.red(project) for project in projects if project.red],
        "items": [_shown(call, change, halts[change.project]) for change in changes],
    }


def _shown(call: Call, change: Change, halt: str) -> Answer:
    return views.change(change, now=call.now, paused="" if change.ended else halt)


async def _answer(call: Call, change: Change) -> Answer:
    return _shown(call, change, await call.engine.changes.halted(change))


async def show(call: Call) -> Answer:
    """Where a change stands, and what was said about it."""
    change = await call.engine.changes.get(call.id)
    output, learnings = await call.engine.changes.notes(change)
    known = {"head": change.head, "landing": views.landing(change.landing), "output": output, "learnings": learnings}
    return await _answer(call, change) | known | await said(call, change)


async def receipt(call: Call, given: PageQuery) -> Answer:
    """Proof of a landed change, with a part of its commits and files."""
    change = await call.engine.changes.get(call.id)
    if change.landing is None:
        raise Conflict(f"{change.id} has not landed; it is {change.state}.", hint="See `windlass queue`.")
    return views.receipt(change, change.landing, await call.engine.changes.undoing(change.id), given.part)


async def undo(call: Call) -> Answer:
    """Take a landed change back, through the same checks."""
    return await _answer(call, await call.engine.changes.undo(call.id))


# ── the queue, as people arrange it ──────────────────────────────────────────────────────────────────────────


async def add(call: Call, given: BranchRequest) -> Answer:
    """Let a branch of the repository land."""
    return await _answer(call, await call.engine.queue.add(given.path, given.branch, given.title))


async def drop(call: Call, given: ReasonRequest) -> Answer:
    """Give a change up."""
    return await _answer(call, await call.engine.queue.drop(call.id, _one_line(given.reason)))


async def hold(call: Call, given: ReasonRequest) -> Answer:
    """Keep a change from landing until a person lets it."""
    return await _answer(call, await call.engine.queue.hold(call.id, _one_line(given.reason)))


async def release(call: Call) -> Answer:
    """Let a held change go on."""
    return await _answer(call, await call.engine.queue.release(call.id))


async def retry(call: Call) -> Answer:
    """Try a change again that was refused."""
    return await _answer(call, await call.engine.queue.retry(call.id))


async def first(call: Call) -> Answer:
    """Let a change be tried before the others."""
    return await _answer(call, await call.engine.queue.first(call.id))


async def pause(call: Call, given: PauseRequest) -> Answer:
    """Let nothing land until it is resumed."""
    return views.pause(await call.engine.queue.pause(given.path, _one_line(given.reason)))


async def resume(call: Call, given: PlaceRequest) -> Answer:
    """Let changes land again."""
    return views.pause(await call.engine.queue.resume(given.path))


def _one_line(text: str) -> str:
    return " ".join(text.split())
