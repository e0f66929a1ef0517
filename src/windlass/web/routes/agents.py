"""Agents: who does what, what they said, and stopping them."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import Response

from windlass.core import codec
from windlass.core.errors import BadInput, Conflict
from windlass.engine.projects.tasks import Hiring
from windlass.engine.views.run_output import Piece
from windlass.web import caller_context, http_io, views
from windlass.web.request import Call


async def every(call: Call) -> Response:
    """Who is at work, with the evidence."""
    found = await call.engine.status.every(retired=http_io.flag(call.request, "all"), project=await call.project())
    return http_io.listing([views.agent(each) for each in found], now=call.now)


async def add(call: Call) -> Response:
    """A new agent that waits to be spoken to."""
    given = await http_io.body(call.request)
    names = ("path", "name", "instance", "provider", "model", "role", "prompt")
    texts = {name: http_io.text(given, name, "") for name in names}
    talks = bool(given.get("context", False))
    agent = await call.engine.tasks.hire(Hiring(**texts, talks=talks, options=http_io.options(given)))
    return http_io.answer(views.agent((await call.engine.status.page(agent.id)).view), status=201)


async def show(call: Call) -> Response:
    """All about one agent."""
    page = await call.engine.status.page(await caller_context.agent(call), viewer=await caller_context.viewer(call))
    return http_io.answer(views.page(page, now=call.now))


async def logs(call: Call) -> Response:
    """What an agent printed, as JSON lines; with follow, as it comes."""
    output, number, follow = (
        call.engine.output,
        http_io.number(call.request, "run", 0),
        http_io.flag(call.request, "follow"),
    )
    await output.check(await caller_context.agent(call), number, viewer=await caller_context.viewer(call))
    age = http_io.seconds(call.request, "newer")
    since = call.now - age if age is not None else 0.0

    async def shaped() -> AsyncIterator[dict[str, Any]]:
        async for piece in output.pieces(call.name, number=number, since=since, follow=follow):
            yield _piece(piece)
        if follow and not await output.is_over(call.name):
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


async def diff(call: Call) -> Response:
    """What an agent has changed since main."""
    return http_io.answer({"diff": await call.engine.diffs.of(await caller_context.agent(call))})


async def stop(call: Call) -> Response:
    """Stop an agent, with all that it started."""
    engine, reason = call.engine, "stopped by hand"
    await caller_context.agent(call)
    if not (await engine.runs.stop(call.name, reason) or await engine.changes.withdraw(call.name, reason)):
        raise Conflict(
            f"{call.name} is not running, so there is nothing to stop.", hint=f"See `windlass show {call.name}`."
        )
    return http_io.answer({"stopped": [call.name]})


async def stop_all(call: Call) -> Response:
    """Stop every agent that is at work."""
    ended = await call.engine.workflows.stop_all()
    tasks = await call.engine.ports.store.read(lambda store: store.unfinished_tasks())
    names = dict.fromkeys(task.agent for task in tasks if task.agent)
    stopped = [name for name in names if await call.engine.runs.stop(name, "stopped by hand")]
    return http_io.answer({"stopped": [*dict.fromkeys((*ended, *stopped))]})


async def reply(call: Call) -> Response:
    """Answer an agent's open questions; it goes on."""
    given = await http_io.body(call.request)
    words = http_io.texts(given, "words") if "words" in given else [http_io.text(given, "body")]
    if not all(word.strip() for word in words):
        raise BadInput("The answer has no words.")
    key = http_io.text(given, "key", "")
    answered = await call.engine.talk.answer(await caller_context.agent(call), words, key=key)
    return http_io.answer({"message": codec.plain(answered)})


async def questions(call: Call) -> Response:
    """What a person can answer now, oldest first."""
    asked = await call.engine.talk.questions(await call.project(), viewer=await caller_context.viewer(call))
    return http_io.listing([views.question(each, now=call.now) for each in asked], now=call.now)


async def signal(call: Call) -> Response:
    """A run gives its own signal; whose it is, the connection says."""
    run = await call.engine.runs.signal(call.caller.must_be_run(), await http_io.body(call.request))
    return http_io.answer({"run": run.id, "agent": run.agent})


async def check(call: Call) -> Response:
    """A run has its own commits checked, as main would be with them."""
    result, output = await call.engine.rehearsals.check(call.caller.must_be_run())
    return http_io.answer(views.check(result) | {"output": output})
