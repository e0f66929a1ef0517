"""Reviews: asking for one, what is said about a change, and settling it."""

from __future__ import annotations

from msgspec import field
from msgspec.structs import asdict

from windlass.core import codec
from windlass.core.gate import reviews
from windlass.core.nouns.change import Change
from windlass.core.nouns.message import Kind
from windlass.core.requests import R, Request
from windlass.engine.gate.reviews import Look
from windlass.web import views
from windlass.web.request import Answer, Call


class ReviewRequest(Request):
    agent: str = ""
    provider: str = ""
    options: dict[str, str] = field(default_factory=dict)


class CommentRequest(Request):
    body: str
    file: str = ""
    line: int = 0
    blocking: bool = False
    reply_to: str = ""


class ResolveRequest(Request):
    words: str = ""


async def start(call: Call, given: ReviewRequest) -> Answer:
    """Let an agent look at a change."""
    task, agent = await call.engine.reviews.start(call.id, Look(**asdict(given)))
    return {"change": call.id, "task": views.task(task), "agent": agent.id}


async def diff(call: Call) -> Answer:
    """What a change does to main."""
    change = await call.engine.changes.get(call.id)
    return {"diff": await call.engine.diffs.of_change(change)}


async def comment(call: Call, given: CommentRequest) -> Answer:
    """A comment by whoever calls: the connection says who that is."""
    given = await _without_secrets(call, given)
    comment = reviews.compose(given.body, file=given.file, line=given.line, blocking=given.blocking)
    made = await call.engine.reviews.comment(call.caller.run, call.id, comment, given.reply_to)
    return views.comment(made, open_ones=[made.id] if comment.blocking else [], now=call.now)


async def resolve(call: Call, given: ResolveRequest) -> Answer:
    """A blocking comment is settled, if the caller may say so."""
    given = await _without_secrets(call, given)
    key = str(call.request.path_params["comment"])
    found = await call.engine.reviews.resolve(call.caller.run, call.id, key, given.words)
    return views.comment(found, open_ones=(), now=call.now)


async def _without_secrets(call: Call, given: R) -> R:
    """The request, an agent's without its secrets."""
    if not call.caller.run:
        return given
    return codec.revive(type(given), await call.engine.runs.unmarked(call.caller.run, codec.plain(given)))


async def said(call: Call, change: Change) -> Answer:
    """The comments on a change, and the opinions of its reviewers."""
    messages = await call.engine.reviews.said(change)
    open_ones = {comment.id for comment in reviews.open_blocking(messages)} if not change.ended else set()
    comments = [message for message in messages if message.kind is Kind.COMMENT]
    return {
        "comments": [views.comment(comment, open_ones=open_ones, now=call.now) for comment in comments],
        "reviews": [views.review(message) for message in messages if message.remark and message.remark.opinion],
    }
