"""Agents: who does what, what they said, and stopping them."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from typing import Any

from msgspec import field
from msgspec.structs import asdict
from starlette.responses import Response

from windlass.core.errors import BadInput, Conflict
from windlass.core.requests import Request
from windlass.engine.projects.tasks import Hiring
from windlass.engine.views.run_output import Piece
from windlass.web import http_io, views
from windlass.web.request import Answer, Call, Folder, ListQuery, PlaceQuery, Seconds, Texts, Whole


class AgentRequest(Request):
    path: Folder
    name: str
    instance: str = ""
    provider: str = ""
    model: str = ""
    role: str = ""
    prompt: str = ""
    talks: bool = field(default=False, name="context")
    options: dict[str, str] = field(default_factory=dict)


class LogQuery(Request):
    run: Whole = 0
    follow: bool = False
    newer: Seconds | None = None


class ReplyRequest(Request):
    words: Texts = ()
    body: str = ""
    key: str = ""


async def every(call: Call, given: ListQuery) -> Answer:
    """Who is at work, with the evidence."""
    found = await call.engine.status.every(retired=given.all, project=await call.project(given.path))
    return call.listing([views.agent(view) for view in found])


async def add(call: Call, given: AgentRequest) -> Answer:
    """A new agent that waits to be spoken to."""
    agent = await call.engine.tasks.hire(Hiring(**asdict(given)))
    return views.agent((await call.engine.status.page(agent.id)).view)


async def show(call: Call) -> Answer:
    """All about one agent."""
    page = await call.engine.status.page(await call.agent(), viewer=call.viewer)
    return views.page(page, now=call.now)


async def logs(call: Call, given: LogQuery) -> Response:
    """What an agent printed, as JSON lines; with follow, as it comes."""
    output = call.engine.output
    await output.check(await call.agent(), given.run, viewer=call.viewer)
    since = call.now - given.newer if given.newer is not None else 0.0

    async def shaped() -> AsyncIterator[dict[str, Any]]:
        async for piece in output.pieces(call.name, number=given.run, since=since, follow=given.follow):
            yield _piece(piece)
        if given.follow and not await output.is_over(call.name):
            yield {"leaving": True}  # we are; whoever follows asks the next daemon for the rest

    return http_io.lines(shaped())


def _piece(piece: Piece) -> dict[str, Any]:
    run, chunk = piece.run, piece.chunk
    return {
        "run": run.id,
        "number": run.number,
        "offset": chunk.offset,
        "time": chunk.at,
        "raw": base64.b64encode(chunk.content).decode("ascii"),
        "text": chunk.content.decode("utf-8", "replace"),
        "said": piece.said,
    }


async def diff(call: Call) -> Answer:
    """What an agent has changed since main: another agent sees it in its own project alone."""
    name = await call.agent()
    within = call.caller.project if call.viewer not in ("", name) else ""
    return {"diff": await call.engine.diffs.of(name, within=within)}


async def stop(call: Call) -> Answer:
    """Stop an agent, with all that it started."""
    await call.agent()
    if not await call.engine.stopping.agent(call.name):
        raise Conflict(
            f"{call.name} is not running, so there is nothing to stop.", hint=f"See `windlass show {call.name}`."
        )
    return {"stopped": [call.name]}


async def stop_all(call: Call, given: PlaceQuery) -> Answer:
    """Stop every agent at work, of the project at a path or everywhere. Changes that no agent wants to land go on."""
    project = await call.engine.projects.known_at(given.path) if given.path else None
    stopped = await call.engine.stopping.everyone(project.id if project else "")
    return {
        "stopped": stopped.agents,
        "going_on": [{"id": change.id, "title": change.title} for change in stopped.going_on],
        "project": project.name if project else "",
        "elsewhere": stopped.elsewhere,
    }


async def reply(call: Call, given: ReplyRequest) -> Answer:
    """Answer an agent's open questions; it goes on."""
    words = given.words or (given.body,)
    if not all(word.strip() for word in words):
        raise BadInput("The answer has no words.", hint='Send JSON such as {"body": "…"}.')
    answered = await call.engine.talk.answer(await call.agent(), words, key=given.key)
    return {"message": answered}


async def questions(call: Call, given: PlaceQuery) -> Answer:
    """What a person can answer now, oldest first."""
    asked = await call.engine.talk.questions(await call.project(given.path), viewer=call.viewer)
    return call.listing([views.question(question, now=call.now) for question in asked])


async def signal(call: Call, given: dict[str, Any]) -> Answer:
    """A run gives its own signal; whose it is, the connection says."""
    run = await call.engine.runs.signal(call.caller.run, given)
    return {"run": run.id, "agent": run.agent}


async def check(call: Call) -> Answer:
    """A run has its own commits checked, as main would be with them."""
    result, output = await call.engine.rehearsals.check(call.caller.run)
    return views.check(result) | {"output": output}
