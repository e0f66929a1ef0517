"""The OpenAI Responses API, as far as Codex uses it."""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

from .api import Api, Body, Event
from .script import Asked, Fault, Refusal, Reply, Step, Usage, texts
from .tools import named

FAULTS = {
    Fault.AUTH: (401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    Fault.RATE: (429, "requests", "rate_limit_exceeded", "Rate limit reached for requests. Please try again in 1s."),
    Fault.QUOTA: (429, "usage_limit_reached", None, "The usage limit has been reached"),
    Fault.BILLING: (429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota."),
    Fault.OVERLOADED: (503, "server_error", "server_is_overloaded", "Our servers are currently overloaded."),
    Fault.CONTEXT: (
        400,
        "invalid_request_error",
        "context_length_exceeded",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
    ),
    Fault.SERVER: (500, "server_error", None, "The server had an error while processing your request."),
}
FOLDER = re.compile(r"<cwd>([^<]+)</cwd>")


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────


def read(body: Body, headers: Mapping[str, str]) -> Asked:
    items = [{"type": "message"} | each for each in body.get("input", ())]
    system = [body.get("instructions") or "", *_said(items, "developer"), *_said(items, "system")]
    prompts = _said(items, "user")
    folder = FOLDER.search("\n".join(prompts))
    return Asked(
        model=body.get("model", ""),
        system="\n".join(system),
        prompts=tuple(prompts),
        results=tuple(_words(item.get("output")) for item in items if item["type"].endswith("_output")),
        tools=frozenset(name for each in body.get("tools") or () for name in _names(each)),
        turn=_turns(items),
        streaming=bool(body.get("stream")),
        conversation=headers.get("session_id") or body.get("prompt_cache_key") or "",
        key=headers.get("authorization", "").removeprefix("Bearer "),
        folder=folder[1] if folder else "",
    )


def _names(tool: Body) -> list[str]:
    """What a tool is called; those of an MCP server come together, in a namespace; a vendor's own has a type."""
    if tool.get("type") == "namespace":
        return [f"{tool['name']}__{each['name']}" for each in tool.get("tools") or ()]
    return [tool["name"] if "name" in tool else tool.get("type", "")]


def _said(items: list[Body], role: str) -> list[str]:
    return [texts(item.get("content")) for item in items if item["type"] == "message" and item.get("role") == role]


def _words(output: Any) -> str:
    return output if isinstance(output, str) else texts(output) or json.dumps(output)


def _turns(items: list[Body]) -> int:
    """How often the model spoke; items in a row are one turn."""
    return sum(ours for ours, _ in itertools.groupby(items, key=_is_ours))


def _is_ours(item: Body) -> bool:
    return item.get("role") == "assistant" or item["type"] in {"reasoning", "function_call", "custom_tool_call"}


# ── answering ────────────────────────────────────────────────────────────────────────────────────────────────


def whole(reply: Reply) -> Body:
    return _begun(reply) | {"status": "completed", "output": _items(reply), "usage": _usage(reply.step.usage)}


def _begun(reply: Reply) -> Body:
    told = {"object": "response", "created_at": int(time.time()), "model": reply.asked.model, "error": None}
    return {"id": f"resp_{reply.id}", **told, "status": "in_progress", "output": [], "usage": None}


def _items(reply: Reply) -> list[Body]:
    step = reply.step
    items: list[Body] = []
    if step.think:
        summary = [{"type": "summary_text", "text": step.think}]
        items.append({"type": "reasoning", "id": f"rs_{reply.id}", "summary": summary, "encrypted_content": None})
    if step.text:
        content = [{"type": "output_text", "text": step.text, "annotations": []}]
        items.append({"type": "message", "id": f"msg_{reply.id}", "role": "assistant", "content": content})
    for number, call in enumerate(step.calls):
        name, arguments = named(call, reply.asked)
        wanted = {"id": f"fc_{reply.id}_{number}", "call_id": f"call_{reply.id}_{number}", "name": name}
        if isinstance(arguments, str):
            items.append({"type": "custom_tool_call", **wanted, "input": arguments})
        else:
            space, _, own = name.rpartition("__")
            within = {"namespace": space, "name": own} if space else {}
            items.append({"type": "function_call", **wanted, **within, "arguments": json.dumps(arguments)})
    return [item if item["type"] == "reasoning" else item | {"status": "completed"} for item in items]


def _usage(usage: Usage) -> Body:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input + usage.output,
    }


def events(reply: Reply) -> Iterator[Event]:
    numbers = itertools.count()
    for event in _unnumbered(reply):
        yield event | {"sequence_number": next(numbers)}


def _unnumbered(reply: Reply) -> Iterator[Body]:
    response = whole(reply)
    yield {"type": "response.created", "response": _begun(reply)}
    for index, item in enumerate(response["output"]):
        at = {"output_index": index}
        yield {"type": "response.output_item.added", **at, "item": item | _EMPTY[item["type"]]}
        for delta in _deltas(item):
            yield delta | at | {"item_id": item["id"]}
        yield {"type": "response.output_item.done", **at, "item": item}
    yield {"type": "response.completed", "response": response}


_EMPTY: Mapping[str, Body] = {
    "reasoning": {"summary": []},
    "message": {"content": [], "status": "in_progress"},
    "function_call": {"arguments": "", "status": "in_progress"},
    "custom_tool_call": {"input": "", "status": "in_progress"},
}


def _deltas(item: Body) -> Iterator[Body]:
    match item:
        case {"type": "message", "content": [{"text": text} as part]}:
            here = {"content_index": 0}
            yield {"type": "response.content_part.added", **here, "part": part | {"text": ""}}
            for piece in re.findall(r"\S+\s*|\s+", text):
                yield {"type": "response.output_text.delta", **here, "delta": piece}
            yield {"type": "response.output_text.done", **here, "text": text}
            yield {"type": "response.content_part.done", **here, "part": part}
        case {"type": "reasoning", "summary": [{"text": text} as part]}:
            here = {"summary_index": 0}
            yield {"type": "response.reasoning_summary_part.added", **here, "part": part | {"text": ""}}
            yield {"type": "response.reasoning_summary_text.delta", **here, "delta": text}
            yield {"type": "response.reasoning_summary_text.done", **here, "text": text}
        case {"type": "function_call", "arguments": arguments}:
            yield {"type": "response.function_call_arguments.delta", "delta": arguments}
            yield {"type": "response.function_call_arguments.done", "arguments": arguments}
        case {"type": "custom_tool_call", "input": text}:
            yield {"type": "response.custom_tool_call_input.delta", "delta": text}
            yield {"type": "response.custom_tool_call_input.done", "input": text}


# ── refusing ─────────────────────────────────────────────────────────────────────────────────────────────────


def refuse(step: Step) -> Refusal:
    status, kind, code, words = FAULTS[step.fault or Fault.SERVER]
    error: Body = {"message": words, "type": kind, "param": None, "code": code}
    headers = {} if step.retry_after is None else {"retry-after": str(step.retry_after)}
    if step.fault is Fault.QUOTA:
        resets = int(time.time()) + step.resets_in
        error |= {"plan_type": "plus", "resets_at": resets, "resets_in_seconds": step.resets_in}
        headers |= {
            "x-codex-primary-used-percent": "100.0",
            "x-codex-primary-window-minutes": "300",
            "x-codex-primary-reset-at": str(resets),
        }
    return Refusal(status=status, headers=headers, body={"error": error})


def break_off(step: Step) -> Body:
    _, kind, code, words = FAULTS[step.fault or Fault.SERVER]
    failed = {"id": "resp_scripted", "object": "response", "status": "failed", "output": []}
    return {"type": "response.failed", "response": failed | {"error": {"code": code or kind, "message": words}}}


API = Api(path="/responses", read=read, whole=whole, events=events, refuse=refuse, break_off=break_off)
