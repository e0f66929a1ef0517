"""MCP messages, as far as the bridge must understand them: their era, what changes something, what may be repeated."""

from __future__ import annotations

import json
from binascii import b2a_base64
from collections.abc import Iterator
from typing import Any

LARGEST = 4_000_000
"""Bytes of one message that the daemon takes."""
MOST_NAMED = 20
BAD_JSON, BAD_REQUEST = -32700, -32600
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
LOOKING = frozenset("channel_peek channel_wait inbox_read document_list document_read agents_list".split())
"""Tools that change nothing: any number of them may be called at once."""
WAITING = frozenset({"channel_wait"})
REPEATABLE = LOOKING | frozenset("channel_send inbox_ack ask answer complete".split())
"""Tools that may be called again when nobody knows whether the first call arrived."""

Message = dict[str, Any]


def read_line(line: bytes) -> tuple[Message | None, int, str]:
    """The message in a line, if there is one; and an error code and a sentence if it is bad."""
    if not line.strip():
        return None, 0, ""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None, BAD_JSON, "That line is no JSON."
    if not isinstance(message, dict):
        return None, BAD_REQUEST, "A line must be one message, a JSON object."
    return message, BAD_REQUEST, f"The message has more than {LARGEST} bytes." if len(line) > LARGEST else ""


def era(message: Message) -> str:
    """The version that a request of the newer era carries in itself; nothing in the older."""
    meta = params(message).get("_meta")
    version = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
    return version if isinstance(version, str) and version.isascii() and version.isprintable() else ""


def params(message: Message) -> Message:
    found = message.get("params")
    return found if isinstance(found, dict) else {}


def is_stream(message: Message) -> bool:
    return message.get("method") == "subscriptions/listen"


def wanted(message: Message) -> list[str]:
    """The URIs that a request to listen asks for."""
    wanted = params(message).get("notifications")
    uris = wanted.get("resourceSubscriptions") if isinstance(wanted, dict) else None
    return [uri for uri in uris if isinstance(uri, str)] if isinstance(uris, list) else []


def _is_of(tools: frozenset[str], message: Message) -> bool:
    name = params(message).get("name")
    return isinstance(name, str) and name in tools


def may_repeat(message: Message) -> bool:
    return message.get("method") != "tools/call" or _is_of(REPEATABLE, message)


def may_change(message: Message) -> bool:
    """Whether a message must keep its order. An unknown tool may change something, too."""
    return message.get("method") == "tools/call" and not _is_of(LOOKING, message)


def waits_from_now(message: Message) -> bool:
    """Whether a message waits for messages from now on: repeated, it would begin at a later time."""
    given = params(message).get("arguments", {})
    waits = message.get("method") == "tools/call" and _is_of(WAITING, message)
    return waits and isinstance(given, dict) and not given.get("since")


def with_since(message: Message, since: str) -> Message:
    """The same request to wait, beginning after the message `since`."""
    given = params(message)
    return message | {"params": given | {"arguments": given.get("arguments", {}) | {"since": since}}}


def encoded(value: str) -> str:
    """A text in the form that a header may have."""
    if value.isascii() and value.isprintable() and value == value.strip() and not value.startswith("=?base64?"):
        return value
    return f"=?base64?{b2a_base64(value.encode('utf-8', 'surrogatepass'), newline=False).decode()}?="


def refusal(value: Message, status: int) -> str:
    """The daemon's own words for an error."""
    said = value.get("error")
    if isinstance(said, dict):
        return f"{said.get('message', '')} {said.get('hint', '')}".strip()
    return f"The daemon answered {status} and did not say why."


def unsaid(left: list[Message]) -> str:
    """The sentence that names the messages that were not sent; the first one may have arrived."""
    first, *rest = (f"{params(message).get('name')} (id {message.get('id')})" for message in left)
    more = f", and {len(rest) - MOST_NAMED} more" if len(rest) > MOST_NAMED else ""
    after = f"; not sent: {', '.join(rest[:MOST_NAMED])}{more}" if rest else ""
    return f"The daemon did not answer in time, and may not have heard {first}{after}."


def values(headers: dict[str, str], pieces: Iterator[bytes]) -> Iterator[Message]:
    """Yield the messages of an answer: one, or those of a stream."""
    if headers.get("content-type", "").startswith("text/event-stream"):
        yield from _events(pieces)
        return
    body = b"".join(pieces)
    value = json.loads(body) if body.strip() else None
    if isinstance(value, dict):
        yield value


def _events(pieces: Iterator[bytes]) -> Iterator[Message]:
    rest, said = b"", []
    for piece in pieces:
        *lines, rest = (rest + piece).replace(b"\r\n", b"\n").split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                said.append(line[5:].removeprefix(b" "))
            elif not line and said:
                text, said = b"\n".join(said), []
                if text.strip():
                    yield json.loads(text)
