"""Where something happened: the projects that an event is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Change
from windlass.core.nouns.event import Event
from windlass.core.nouns.message import Message
from windlass.core.nouns.run import Run
from windlass.core.nouns.task import Task
from windlass.core.ports.store import Reading

Placed = TypeVar("Placed", Agent, Change, Message, Task)
"""What belongs to a project."""


def concerns(event: Event, project: str, store: Reading) -> bool:
    """Whether an event is about a project, or about none, as the daemon's own are: those are for everyone."""
    found = {_of(each, store) for each in event.became} or {_named(event, store)}
    return project in found or found == {""}


def _of(row: Mapping[str, Any], store: Reading) -> str:
    """The project of a row."""
    match row["noun"]:
        case "project":
            return str(row["id"])
        case "run":
            return _find(Agent, row["agent"], store)
        case "delivery":
            return _find(Message, row["message"], store)
    return str(row.get("project", ""))


def _named(event: Event, store: Reading) -> str:
    """The project of what an event without rows is about, such as a run's output."""
    match event.kind.partition(".")[0]:
        case "run":
            run = store.find(Run, event.subject)
            return _find(Agent, run.agent, store) if run else ""
        case "agent":
            return _find(Agent, event.subject, store)
        case "change":
            return _find(Change, event.subject, store)
        case "message":
            return _find(Message, event.subject, store)
        case "task":
            return _find(Task, event.subject, store)
    return ""


def _find(kind: type[Placed], key: str, store: Reading) -> str:
    found = store.find(kind, key)
    return found.project if found else ""
