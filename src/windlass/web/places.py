"""Where something happened: the projects that an event is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windlass.core.agent import Agent
from windlass.core.change import Change
from windlass.core.event import Event
from windlass.core.message import Message
from windlass.core.run import Run
from windlass.core.store import Reading
from windlass.core.task import Task

_NOUNS: Mapping[str, type[Agent | Change | Message | Task]] = {
    "agent": Agent,
    "change": Change,
    "message": Message,
    "task": Task,
}


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
    noun = event.kind.partition(".")[0]
    if noun == "run":
        run = store.find(Run, event.subject)
        return _find(Agent, run.agent, store) if run else ""
    return _find(_NOUNS[noun], event.subject, store) if noun in _NOUNS else ""


def _find(kind: type[Agent | Change | Message | Task], key: str, store: Reading) -> str:
    found = store.find(kind, key)
    return found.project if found else ""
