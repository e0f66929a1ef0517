"""The Anthropic Messages API, as far as Claude Code uses it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

from .api import Api, Body, Event
from .script import Asked, Fault, Refusal, Reply, Step, Usage, texts
from .tools import named

FAULTS = {
    Fault.AUTH: (401, "authentication_error", "invalid x-api-key"),
    Fault.RATE: (429, "rate_limit_error", "Number of requests has exceeded your per-minute rate limit."),
    Fault.QUOTA: (429, "rate_limit_error", "This request would exceed your account's rate limit."),
    Fault.BILLING: (400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
    Fault.OVERLOADED: (529, "overloaded_error", "Overloaded"),
    Fault.CONTEXT: (400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum"),
    Fault.SERVER: (500, "api_error", "Internal server error"),
}
FOLDER = re.compile(r"[Ww]orking directory: *(\S+)")
FILLED_IN = "No response requested."
"""What Claude Code itself puts in the model's place when it resumes a conversation that was broken off."""
PIECE = 40


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────


def read(body: Body, headers: Mapping[str, str]) -> Asked:
    system = texts(body.get("system"))
    said = [(each["role"], _parts(each["content"])) for each in body.get("messages", ())]
    theirs = [part for role, parts in said if role == "user" for part in parts]
    folder = FOLDER.search(system) or FOLDER.search(texts(theirs))
    return Asked(
        model=body.get("model", ""),
        system=system,
        prompts=tuple(part["text"] for part in theirs if part.get("type") == "text"),
        results=tuple(texts(part.get("content")) for part in theirs if part.get("type") == "tool_result"),
        tools=frozenset(each["name"] for each in body.get("tools") or ()),
        turn=_turns([role for role, parts in said if parts[-1].get("text") != FILLED_IN]),
        streaming=bool(body.get("stream")),
        conversation=headers.get("x-claude-code-session-id", ""),
        key=headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer "),
        folder=folder[1] if folder else "",
    )


def _parts(content: Any) -> list[Body]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _turns(roles: list[str]) -> int:
    """How often the model spoke; messages in a row are one turn."""
    return sum(role == "assistant" != before for before, role in zip(["", *roles], roles, strict=False))


def count_tokens(body: Body) -> Body:
    return {"input_tokens": len(json.dumps(body)) // 4}


# ── answering ────────────────────────────────────────────────────────────────────────────────────────────────


def whole(reply: Reply) -> Body:
    return {
        "id": f"msg_{reply.id}",
        "type": "message",
        "role": "assistant",
        "model": reply.asked.model,
        "content": _blocks(reply),
        "stop_reason": "tool_use" if reply.step.calls else "end_turn",
        "stop_sequence": None,
        "usage": _usage(reply.step.usage),
    }


def _blocks(reply: Reply) -> list[Body]:
    step = reply.step
    blocks: list[Body] = []
    if step.think:
        blocks.append({"type": "thinking", "thinking": step.think, "signature": "c2NyaXB0ZWQ="})
    if step.text:
        blocks.append({"type": "text", "text": step.text})
    for number, call in enumerate(step.calls):
        name, arguments = named(call, reply.asked)
        blocks.append({"type": "tool_use", "id": f"toolu_{reply.id}_{number}", "name": name, "input": arguments})
    return blocks


def _usage(usage: Usage) -> Body:
    return {
        "input_tokens": usage.input - usage.cached,
        "cache_read_input_tokens": usage.cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": usage.output,
    }


def events(reply: Reply) -> Iterator[Event]:
    message = whole(reply)
    begun = {"content": [], "stop_reason": None, "usage": message["usage"] | {"output_tokens": 1}}
    yield {"type": "message_start", "message": message | begun}
    for index, block in enumerate(message["content"]):
        empty, deltas = _unfolded(block)
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": message["usage"]["output_tokens"]}}
    yield {"type": "message_stop"}


def _unfolded(block: Body) -> tuple[Body, list[Body]]:
    """A block as it begins, and the pieces that fill it."""
    match block:
        case {"type": "text", "text": text}:
            return block | {"text": ""}, [{"type": "text_delta", "text": piece} for piece in _pieces(text)]
        case {"type": "thinking", "thinking": text, "signature": signature}:
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(text)]
            return block | {"thinking": "", "signature": ""}, [
                *deltas,
                {"type": "signature_delta", "signature": signature},
            ]
        case {"input": arguments}:
            pieces = _pieces(json.dumps(arguments))
            return block | {"input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    raise ValueError(f"no block of ours: {block}")


def _pieces(text: str) -> list[str]:
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]


# ── refusing ─────────────────────────────────────────────────────────────────────────────────────────────────


def refuse(step: Step) -> Refusal:
    fault = step.fault or Fault.SERVER
    headers = {"request-id": "req_scripted"}
    if step.retry_after is not None:
        headers["retry-after"] = str(step.retry_after)
    if fault is Fault.QUOTA:
        headers |= _used_up(int(time.time()) + step.resets_in)
    return Refusal(status=FAULTS[fault][0], headers=headers, body=break_off(step))


def _used_up(resets: int) -> dict[str, str]:
    """How a subscription says that it is used up; a CLI with a plain API key takes it for a rate limit."""
    told = {
        "status": "rejected",
        "reset": str(resets),
        "representative-claim": "five_hour",
        "5h-status": "rejected",
        "5h-reset": str(resets),
        "5h-utilization": "1.0",
        "overage-status": "rejected",
        "overage-disabled-reason": "org_level_disabled",
    }
    return {f"anthropic-ratelimit-unified-{name}": value for name, value in told.items()}


def break_off(step: Step) -> Body:
    _, kind, words = FAULTS[step.fault or Fault.SERVER]
    return {"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_scripted"}


API = Api(
    path="/v1/messages",
    read=read,
    whole=whole,
    events=events,
    refuse=refuse,
    break_off=break_off,
    beside={"/v1/messages/count_tokens": count_tokens},
)
