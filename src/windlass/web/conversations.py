"""Conversations: one agent asks, another answers, each at its own pace."""

from __future__ import annotations

from starlette.responses import Response

from windlass.core.errors import BadInput
from windlass.core.message import Message
from windlass.engine.replies import Conversation
from windlass.web import letters, speaking, wire
from windlass.web.call import Call


async def ask(call: Call) -> Response:
    """Ask an agent, by its name, its task or the phase it works in."""
    given = await wire.body(call.request)
    named = wire.text(given, "from", "")
    who = await speaking.speaker(call, named)
    targets = {key: wire.text(given, f"{key}_id", "") for key in ("agent", "task", "phase")}
    if sum(map(bool, targets.values())) != 1:
        raise BadInput("Say whom to ask: one of agent_id, task_id and phase_id.")
    project, foreign = await speaking.project(call, who, wire.text(given, "path", ""), new=True), ""
    if not project:
        project, foreign = await speaking.elsewhere(call, filter(None, [targets["agent"]]), task=targets["task"])
    body = wire.text(given, "question")
    claims, key = await speaking.claimed(call, who, project, named), wire.text(given, "key", "")
    hint = await speaking.novelty(call, project, filter(None, [targets["agent"]]))
    asked = await call.engine.talk.converse(who, project, body, **targets, claims=claims, key=key)
    return wire.answer(letters.conversation(Conversation(asked)) | {"hint": f"{foreign} {hint}".strip()}, status=201)


async def show(call: Call) -> Response:
    """A conversation, and its answer as soon as there is one, or without it when the time is over."""
    who = await speaking.speaker(call)
    found = await call.engine.replies.to(who, call.id, patience=wire.patience(call.request))
    return wire.answer(letters.conversation(found))


async def listen(call: Call) -> Response:
    """The oldest question to an agent that has no answer, as soon as there is one; null when the time is over."""
    who = await speaking.listener(call, call.request.query_params.get("agent_id", ""))
    asked = await call.engine.talk.listen(who, patience=wire.patience(call.request))
    return wire.answer({"conversation": letters.question(asked) if asked else None})


async def answer(call: Call) -> Response:
    """Answer a question; whoever asked is told."""
    given = await wire.body(call.request)
    who = await speaking.speaker(call)
    said = await call.engine.talk.settle(who, call.id, wire.text(given, "answer"))
    asked = await call.engine.ports.store.read(lambda store: store.find(Message, call.id))
    between = {"toAgentId": said.to[0], "askedAgentId": ", ".join(asked.to) if asked else ""}
    return wire.answer({"conversationId": call.id, "status": "answered", "answerId": said.id, **between})
