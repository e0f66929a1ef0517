"""Turns a program's lines into events. Whatever the program prints does no harm."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from windlass.core.runs.provider import LineReading

Event = Mapping[str, Any]

MOST_LINES, MOST_LETTERS = 20, 2000
"""How much people see of a tool's answer."""
LONGEST_CALL = 200
"""Characters that people see of a tool call."""
_LARGEST = 2**53


def reader(
    read: Callable[[Event], LineReading], otherwise: Callable[[str], LineReading]
) -> Callable[[str], LineReading]:
    """Read lines that are JSON objects with a `type` as events, and all others as text."""

    def read_line(line: str) -> LineReading:
        event = as_object(line)
        return read(event) if event is not None and isinstance(event.get("type"), str) else otherwise(line)

    return read_line


def of_type(*types: str) -> re.Pattern[str]:
    """Finds the lines with an event or a part of one of these types; for `Provider.telling`."""
    return re.compile(rf'"type"\s*:\s*"(?:{"|".join(map(re.escape, types))})"')


def as_object(line: str) -> Event | None:
    """The JSON object on a line, if there is one."""
    if not line.lstrip().startswith("{"):
        return None
    try:
        value = _decoded(line)
    except (ValueError, RecursionError):  # no JSON, or brackets beyond all bounds
        return None
    return value if isinstance(value, dict) else None


def _decoded(line: str) -> object:
    """The value of a line; the slow way also takes what is not quite JSON, such as NaN and half characters."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.MsgspecError, ValueError):
        return json.loads(line)


def words(value: object) -> str:
    """A text of an event; half characters, which JSON can say and UTF-8 can't, become question marks."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def count(value: object) -> int:
    """A number of an event, if it can be one."""
    return value if type(value) is int and 0 <= value < _LARGEST else 0


def amount(value: object) -> float:
    """A sum of money in an event, if it can be one."""
    if type(value) is int or isinstance(value, float):
        return float(value) if math.isfinite(value) and 0 <= value < _LARGEST else 0.0
    return 0.0


def table(value: object) -> Event:
    """An object inside an event, if it is one."""
    return value if isinstance(value, dict) else {}


def at(event: Event, path: str) -> object:
    """The value of a field such as `data.items.0.id`, or None."""
    found: object = event if path else None
    for name in path.split("."):
        match found:
            case dict():
                found = found.get(name)
            case list() if name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            case _:
                return None
    return found


def texts(blocks: object) -> str:
    """The texts of a list of blocks, each on its own lines."""
    return "\n".join(
        filter(None, (words(table(block).get("text")) for block in (blocks if isinstance(blocks, list) else ())))
    )


def shortened(text: str) -> str:
    """A tool's answer, cut to what people read."""
    lines = text.rstrip().splitlines()
    kept = "\n".join(lines[:MOST_LINES])
    more = len(lines) - MOST_LINES
    if len(kept) > MOST_LETTERS:
        return f"{kept[:MOST_LETTERS]}…"
    return f"{kept}\n… {more} more lines" if more > 0 else kept


def call(name: str, what: str) -> str:
    """A tool call as one short line."""
    line = " ".join(f"{name} {what}".split())
    return f"{line[:LONGEST_CALL]}…" if len(line) > LONGEST_CALL else line
