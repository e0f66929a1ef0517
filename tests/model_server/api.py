"""What every API gives to the server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .script import Asked, Refusal, Reply, Step

Body = dict[str, Any]
Event = Mapping[str, Any]
"""One server-sent event; its `type`, if it has one, is also its name. An empty one says that there are no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """One vendor's protocol: how a request is read, and how an answer or a fault is put."""

    path: str
    """How the path of a request to the model ends."""
    read: Callable[[Body, Mapping[str, str]], Asked]
    """Understand a request from its body and its headers (in small letters)."""
    whole: Callable[[Reply], Body]
    """An answer in one piece."""
    events: Callable[[Reply], Iterator[Event]]
    """An answer as a stream; the first event only says that it begins."""
    refuse: Callable[[Step], Refusal]
    """The step's fault instead of an answer."""
    break_off: Callable[[Step], Event]
    """The step's fault within a stream."""
    beside: Mapping[str, Callable[[Body], Body]] = field(default_factory=dict)
    """Other paths of this API that need no script."""
