"""The timeline of a channel as `channel.md` shows it: `### HH:MM:SS [name]`, and the text below.

A line of a text that looks like a heading of ours, or that is escaped already, gets a backslash before its `###`: so no
text can make an entry, and each reads back as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from windlass.core.address import SYSTEM

_LOOKS_SO = re.compile(r"((?:^|\r) {0,3}\\*)###", re.MULTILINE)
"""What Markdown takes for a heading, after any kind of line end."""


@dataclass(frozen=True, slots=True)
class Said:
    """One entry: when, who, what."""

    time: str
    """`HH:MM:SS`"""
    name: str
    text: str


def opening(time: str) -> Said:
    """The first entry of an instance."""
    return Said(time, str(SYSTEM), "Workflow started")


def write_timeline(entries: Iterable[Said]) -> str:
    """The entries, one below the other."""
    return "".join(_entry(entry) for entry in entries)


def _entry(said: Said) -> str:
    return f"### {said.time} [{said.name}]\n{escaped(said.text)}\n\n"


def escaped(text: str) -> str:
    """Text in which nothing looks like a heading of ours."""
    return _LOOKS_SO.sub(r"\1\\###", text)
