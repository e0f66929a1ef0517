"""Conversations: one agent asks, another answers, each at its own pace."""

from __future__ import annotations

from starlette.responses import Response

from windlass.engine.waking.conversations import Conversation
from windlass.web import caller_context, http_io, message_views
from windlass.web.request import Call


async def ask(call: Call) -> Response:
    """Ask an agent, by its name, its task or the phase it works in."""
    given = await http_io.json_object(call.request)
    targets = {key: http_io.text(given, f"{key}_id", "") for key in ("agent", "task", "phase")}
    path, name = http_io.text(given, "path", ""), http_io.text(given, "from", "")
    readers = [targets["agent"]] if targets["agent"] else []
    caller = await caller_context.sender(call, path, name, readers, targets["task"])
    question, key = http_io.text(given, "question"), http_io.text(given, "key", "")
    asked = await call.engine.callers.ask(caller, question, **targets, key=key)
    return http_io.answer(message_views.conversation(Conversation(asked.message)) | {"hint": asked.hint}, status=201)


async def show(call: Call) -> Response:
    """A conversation, and its answer as soon as there is one, or without it when the time is over."""
    who = await caller_context.speaker(call)
    found = await call.engine.replies.to(who, call.id, patience=http_io.patience(call.request))
    return http_io.answer(message_views.conversation(found))


async def listen(call: Call) -> Response:
    """The oldest question to an agent that has no answer, as soon as there is one; null when the time is over."""
    name = call.request.query_params.get("agent_id", "")
    who = await call.engine.callers.reader(call.caller.run, name, call.path)
    asked = await call.engine.talk.listen(who, patience=http_io.patience(call.request))
    return http_io.answer({"conversation": message_views.question(asked) if asked else None})


async def answer(call: Call) -> Response:
    """Answer a question; whoever asked is told."""
    given = await http_io.json_object(call.request)
    who = await caller_context.speaker(call)
    said = await call.engine.talk.settle(who, call.id, http_io.text(given, "answer"))
    asked = (await call.engine.replies.to(who, call.id, patience=0.0)).question
    between = {"toAgentId": said.to[0], "askedAgentId": ", ".join(asked.to)}
    return http_io.answer({"conversationId": call.id, "status": "answered", "answerId": said.id, **between})
