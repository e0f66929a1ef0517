"""The projects that an event is about."""

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

Owned = TypeVar("Owned", Agent, Change, Message, Task)
"""A noun that belongs to a project."""


def projects_of(event: Event, store: Reading) -> set[str]:
    """The ids of the projects that an event is about; an empty one for what is of no project, such as the daemon's."""
    return {project_of_row(row, store) for row in event.became} or {_of_subject(event, store)}


def project_of_row(row: Mapping[str, Any], store: Reading) -> str:
    """The id of the project that a row belongs to."""
    match row["noun"]:
        case "project":
            return str(row["id"])
        case "run":
            return _project(Agent, row["agent"], store)
        case "delivery":
            return _project(Message, row["message"], store)
    return str(row.get("project", ""))


def _of_subject(event: Event, store: Reading) -> str:
    """The project of an event without rows, such as one about a run's output."""
    match event.kind.partition(".")[0]:
        case "run":
            run = store.find(Run, event.subject)
            return _project(Agent, run.agent, store) if run else ""
        case "agent":
            return _project(Agent, event.subject, store)
        case "change":
            return _project(Change, event.subject, store)
        case "message":
            return _project(Message, event.subject, store)
        case "task":
            return _project(Task, event.subject, store)
        case "project":
            return event.subject
    return ""


def _project(kind: type[Owned], key: str, store: Reading) -> str:
    found = store.find(kind, key)
    return found.project if found else ""
