"""The chat completions of OpenAI, which most servers of one's own speak."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping

from . import responses
from .api import Api, Body, Event
from .script import Asked, Refusal, Reply, Step, Usage, texts
from .tools import named


def read(body: Body, headers: Mapping[str, str]) -> Asked:
    said = body.get("messages", ())
    roles = [each["role"] for each in said]
    return Asked(
        model=body.get("model", ""),
        system="\n".join(texts(each["content"]) for each in said if each["role"] in ("system", "developer")),
        prompts=tuple(texts(each["content"]) for each in said if each["role"] == "user"),
        results=tuple(texts(each["content"]) for each in said if each["role"] == "tool"),
        tools=frozenset(each["function"]["name"] for each in body.get("tools") or ()),
        turn=roles.count("assistant"),
        streaming=bool(body.get("stream")),
        key=headers.get("authorization", "").removeprefix("Bearer "),
    )


def whole(reply: Reply) -> Body:
    message = {"role": "assistant", "content": reply.step.text or None, "tool_calls": _calls(reply) or None}
    choice = {"index": 0, "message": message, "finish_reason": _ended(reply)}
    return _about(reply, "chat.completion") | {"choices": [choice], "usage": _usage(reply.step.usage)}


def _about(reply: Reply, kind: str) -> Body:
    return {"id": f"chat_{reply.id}", "object": kind, "created": int(time.time()), "model": reply.asked.model}


def _ended(reply: Reply) -> str:
    return "tool_calls" if reply.step.calls else "stop"


def _calls(reply: Reply) -> list[Body]:
    found = []
    for number, call in enumerate(reply.step.calls):
        name, arguments = named(call, reply.asked)
        function = {"name": name, "arguments": json.dumps(arguments)}
        found.append({"index": number, "id": f"call_{reply.id}_{number}", "type": "function", "function": function})
    return found


def _usage(usage: Usage) -> Body:
    return {
        "prompt_tokens": usage.input,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
    }


def events(reply: Reply) -> Iterator[Event]:
    about = _about(reply, "chat.completion.chunk")

    def piece(delta: Body, ended: str | None = None) -> Event:
        return about | {"choices": [{"index": 0, "delta": delta, "finish_reason": ended}]}

    yield piece({"role": "assistant", "content": ""})
    if reply.step.text:
        yield piece({"content": reply.step.text})
    for call in _calls(reply):
        yield piece({"tool_calls": [call]})
    yield piece({}, _ended(reply))
    yield about | {"choices": [], "usage": _usage(reply.step.usage)}
    yield {}


def refuse(step: Step) -> Refusal:
    return responses.refuse(step)


def break_off(step: Step) -> Event:
    return {"error": dict(responses.refuse(step).body["error"])}


API = Api(path="/chat/completions", read=read, whole=whole, events=events, refuse=refuse, break_off=break_off)
