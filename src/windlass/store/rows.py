"""Nouns as rows: one table per noun, one column per field, nested fields as JSON text."""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import msgspec

from windlass.core import codec
from windlass.core.errors import BadInput, Unavailable
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Change
from windlass.core.nouns.document import Document
from windlass.core.nouns.event import Event
from windlass.core.nouns.message import Delivery, Kind, Message
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Run
from windlass.core.nouns.task import Task
from windlass.core.ports.store import Noun
from windlass.core.workflows.instance import Instance

T = TypeVar("T")

_POSITIONS = ("system/chat/", "system/notes/", "ports/", "radar/")
_LARGEST = 2**63 - 1
_NUMBERED = re.compile(r"[a-z]([1-9][0-9]{0,17})")


def number(key: str) -> int:
    """The 12 of `m12`: messages are sorted by number, and m9 comes before m12."""
    found = _NUMBERED.fullmatch(key)
    if not found:
        raise BadInput(f"{key!r} is not a numbered id.", hint="A message's id is a letter and a number, like m12.")
    return int(found[1])


@dataclass(frozen=True, slots=True)
class RowShape:
    """How one noun is kept in its table."""

    kind: type[Noun]
    table: str
    nested: tuple[str, ...] = ()
    """Fields kept as JSON text."""
    order: Mapping[str, Callable[[Any], int]] | None = None
    """Columns that hold a number to sort by, and the function that gives it."""

    @property
    def noun(self) -> str:
        """The noun as events say it."""
        return self.kind.__name__.lower()


_SHAPES = (
    RowShape(Project, "projects", nested=("health",)),
    RowShape(Agent, "agents", nested=("also", "options", "tools")),
    RowShape(Task, "tasks", nested=("needs", "paths")),
    RowShape(Run, "runs", nested=("identity", "evidence", "odd", "usage", "trouble", "checked")),
    RowShape(
        Message, "messages", nested=("to", "remark", "chain"), order={"place": lambda message: number(message.id)}
    ),
    RowShape(Delivery, "deliveries", order={"sent": lambda delivery: number(delivery.message)}),
    RowShape(Document, "documents"),
    RowShape(Change, "changes", nested=("candidate", "checks", "landing")),
    RowShape(
        Instance,
        "instances",
        nested=("agents", "files", "limits", "handoffs", "triggers", "began", "heads", "landing"),
    ),
)
SHAPES: Mapping[type[Any], RowShape] = {shape.kind: shape for shape in _SHAPES}
KINDS: Mapping[str, type[Noun]] = {shape.noun: shape.kind for shape in _SHAPES}
"""Nouns by the name that events give them."""


def _upsert(shape: RowShape) -> str:
    columns = dict.fromkeys(["id", *(shape.order or {}), *(field.name for field in fields(shape.kind))])
    names = ", ".join(f'"{column}"' for column in columns)
    values = ", ".join(f":{column}" for column in columns)
    changes = ", ".join(f'"{column}" = excluded."{column}"' for column in columns if column not in ("id", "place"))
    return f"INSERT INTO {shape.table} ({names}) VALUES ({values}) ON CONFLICT (id) DO UPDATE SET {changes}"


UPSERTS: Mapping[type[Any], str] = {shape.kind: _upsert(shape) for shape in _SHAPES}
"""The statement that writes a noun, whether it is new or known."""

PREFIXES: Mapping[type[Any], str] = {Task: "t", Run: "r", Message: "m", Change: "c"}
"""What a new id begins with."""


def learn() -> None:
    """Prepare to read every noun, before several threads try to at once."""
    for kind in SHAPES:
        codec.learn(kind)


def prefix(kind: type[Noun]) -> str:
    """The letter of a kind's numbered ids."""
    if kind not in PREFIXES:
        raise BadInput(f"{kind.__name__} has a name of its own and is not numbered.")
    return PREFIXES[kind]


def write(noun: Noun, plain: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of one noun, from its fields as builtins."""
    shape = SHAPES[type(noun)]
    row = {**plain, "id": noun.id}
    for name in shape.nested:
        row[name] = codec.encode(row[name]).decode()
    for name, place in (shape.order or {}).items():
        row[name] = place(noun)
    return row


def check_numbers(values: Iterable[Any]) -> None:
    """Refuse what neither JSON nor a column can hold: NaN, infinity, and integers of more than 64 bits."""
    for value in values:
        if isinstance(value, str) or value is None:
            continue
        if isinstance(value, float) and not math.isfinite(value):
            raise BadInput(f"{value} is not a number that can be kept.")
        if isinstance(value, int) and abs(value) > _LARGEST:
            raise BadInput(f"The number {value:.3e} is too large to keep.")
        if isinstance(value, dict):
            check_numbers(value.values())
        elif isinstance(value, list | tuple):
            check_numbers(value)


def check_text(text: str) -> str:
    """The text; refused if no column can hold it."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadInput(f"{text[:100]!r} has half of a surrogate pair, which cannot be kept.") from error
    return text


def read(kind: type[T], row: sqlite3.Row) -> T:
    """The noun that a row holds."""
    values = dict(zip(row.keys(), row, strict=True))
    try:
        for name in SHAPES[kind].nested:
            if values[name] is not None:  # a row from before there was such a column
                values[name] = codec.decode(values[name])
        return codec.revive(kind, values)
    except msgspec.MsgspecError as error:
        raise damaged(f"The {SHAPES[kind].noun} {values['id']}", error) from error


def told(became: Mapping[str, Any]) -> Noun:
    """The noun as an event says it became. Events from before a migration use the names of their time."""
    match became:
        case {"noun": "document", "name": str(name), "body": body} if name.startswith("system/instance/"):  # before 014
            return codec.revive(Instance, codec.decode(body))
        case {"noun": "run", "hitch": trouble}:  # before 015
            became = {**became, "trouble": trouble}
        case {"noun": "message", "kind": "nudge"}:  # before 015
            became = {**became, "kind": Kind.REMINDER}
    return codec.revive(KINDS[became["noun"]], became)


def is_position(became: Mapping[str, Any]) -> bool:
    """Whether an event from before 016 tells of a position, which was a document then and has no event now."""
    return became["noun"] == "document" and str(became["name"]).startswith(_POSITIONS)


def document(event: Event) -> Document:
    """The document that an event says was written."""
    (became,) = event.became
    return codec.revive(Document, {name: value for name, value in became.items() if name != "noun"})


def damaged(what: str, error: Exception) -> Unavailable:
    """The error about a row that Windlass did not write like this."""
    return Unavailable(f"{what} cannot be read from the store: {error}.", hint="Put back a copy of the store's file.")
