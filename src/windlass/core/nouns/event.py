"""What happened: one numbered fact, chained to the one before."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

GENESIS = "0" * 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One fact, `noun.past-tense`. `became` holds the rows as they are after it."""

    seq: int
    time: float
    kind: str
    subject: str
    data: Mapping[str, Any] = field(default_factory=dict)
    became: tuple[Mapping[str, Any], ...] = ()
    digest: str = ""
    """The hash of data and rows: it stays when they are redacted."""
    chain: str = GENESIS


def heard_as(event: Event) -> str:
    """The word under which listeners know an event: its kind, and of a message its channel."""
    channel = next((row["channel"] for row in event.became if row["noun"] == "message"), "")
    return f"{event.kind} {channel}".rstrip()


def digest(payload: bytes) -> str:
    """Hash what an event carries."""
    return hashlib.sha256(payload).hexdigest()


def link(before: str, *, seq: int, time: float, kind: str, subject: str, payload_digest: str) -> str:
    """Hash an event's outside and its payload's digest onto the chain so far."""
    text = "\n".join((before, str(seq), repr(time), kind, subject, payload_digest))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
