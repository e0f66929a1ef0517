"""Conversations: one agent asks, another answers, each at its own pace."""

from __future__ import annotations

from starlette.responses import Response

from windlass.core.errors import BadInput
from windlass.core.nouns.message import Message
from windlass.engine.waking.conversations import Conversation
from windlass.web import caller_context, http_io, message_views
from windlass.web.request import Call


async def ask(call: Call) -> Response:
    """Ask an agent, by its name, its task or the phase it works in."""
    given = await http_io.json_object(call.request)
    named = http_io.text(given, "from", "")
    who = await caller_context.speaker(call, named)
    targets = {key: http_io.text(given, f"{key}_id", "") for key in ("agent", "task", "phase")}
    if sum(map(bool, targets.values())) != 1:
        raise BadInput("Say whom to ask: one of agent_id, task_id and phase_id.")
    project, foreign = await caller_context.project(call, who, http_io.text(given, "path", ""), new=True), ""
    if not project:
        project, foreign = await caller_context.elsewhere(call, filter(None, [targets["agent"]]), task=targets["task"])
    body = http_io.text(given, "question")
    claims, key = await caller_context.claimed(call, who, project, named), http_io.text(given, "key", "")
    hint = await caller_context.novelty(call, project, filter(None, [targets["agent"]]))
    asked = await call.engine.talk.converse(who, project, body, **targets, claims=claims, key=key)
    return http_io.answer(
        message_views.conversation(Conversation(asked)) | {"hint": f"{foreign} {hint}".strip()}, status=201
    )


async def show(call: Call) -> Response:
    """A conversation, and its answer as soon as there is one, or without it when the time is over."""
    who = await caller_context.speaker(call)
    found = await call.engine.replies.to(who, call.id, patience=http_io.patience(call.request))
    return http_io.answer(message_views.conversation(found))


async def listen(call: Call) -> Response:
    """The oldest question to an agent that has no answer, as soon as there is one; null when the time is over."""
    who = await caller_context.listener(call, call.request.query_params.get("agent_id", ""))
    asked = await call.engine.talk.listen(who, patience=http_io.patience(call.request))
    return http_io.answer({"conversation": message_views.question(asked) if asked else None})


async def answer(call: Call) -> Response:
    """Answer a question; whoever asked is told."""
    given = await http_io.json_object(call.request)
    who = await caller_context.speaker(call)
    said = await call.engine.talk.settle(who, call.id, http_io.text(given, "answer"))
    asked = await call.engine.ports.store.read(lambda store: store.find(Message, call.id))
    between = {"toAgentId": said.to[0], "askedAgentId": ", ".join(asked.to) if asked else ""}
    return http_io.answer({"conversationId": call.id, "status": "answered", "answerId": said.id, **between})
