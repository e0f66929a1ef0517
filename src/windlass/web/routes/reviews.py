"""Reviews: asking for one, what is said about a change, and settling it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from windlass.core.errors import BadInput
from windlass.core.gate import reviews
from windlass.core.nouns.change import Change
from windlass.core.nouns.message import Kind
from windlass.engine.gate.reviews import Look
from windlass.web import http_io, views
from windlass.web.request import Call


async def start(call: Call) -> Response:
    """Let an agent look at a change."""
    given = await http_io.body(call.request)
    look = Look(
        agent=http_io.text(given, "agent", ""),
        provider=http_io.text(given, "provider", ""),
        options=http_io.options(given),
    )
    task, agent = await call.engine.reviews.start(call.id, look)
    return http_io.answer({"change": call.id, "task": views.task(task), "agent": agent.id}, status=201)


async def diff(call: Call) -> Response:
    """What a change does to main."""
    change = await call.engine.changes.get(call.id)
    return http_io.answer({"diff": await call.engine.diffs.of_change(change)})


async def comment(call: Call) -> Response:
    """A comment by whoever calls: the connection says who that is."""
    given = await _body(call)
    comment = reviews.compose(
        http_io.text(given, "body"),
        file=http_io.text(given, "file", ""),
        line=_line(given),
        blocking=http_io.truth(given, "blocking"),
    )
    reply_to = http_io.text(given, "reply_to", "")
    made = await call.engine.reviews.comment(call.caller.run, call.id, comment, reply_to)
    open_ones = [made.id] if comment.blocking else []
    return http_io.answer(views.comment(made, open_ones=open_ones, now=call.now), status=201)


async def resolve(call: Call) -> Response:
    """A blocking comment is settled, if the caller may say so."""
    given = await _body(call)
    key = str(call.request.path_params["comment"])
    found = await call.engine.reviews.resolve(call.caller.run, call.id, key, http_io.text(given, "words", ""))
    return http_io.answer(views.comment(found, open_ones=(), now=call.now))


async def _body(call: Call) -> Mapping[str, Any]:
    """What the caller says; an agent's words without its secrets."""
    given = await http_io.body(call.request)
    return await call.engine.runs.unmarked(call.caller.run, given) if call.caller.run else given


def _line(given: Mapping[str, Any]) -> int:
    line = given.get("line", 0)
    if type(line) is not int:
        raise BadInput("line must be a whole number.")
    return line


async def said(call: Call, change: Change) -> dict[str, Any]:
    """What was said about a change, and what those who looked at it came to."""
    messages = await call.engine.reviews.said(change)
    open_ones = {each.id for each in reviews.open_blocking(messages)} if not change.ended else set()
    comments = [message for message in messages if message.kind is Kind.COMMENT]
    return {
        "comments": [views.comment(each, open_ones=open_ones, now=call.now) for each in comments],
        "reviews": [views.review(message) for message in messages if message.remark and message.remark.opinion],
    }
