"""The timeline of a channel as `channel.md` shows it: `### HH:MM:SS [name]`, and the text below.

A line of a text that looks like a heading of ours, or that is escaped already, gets a backslash before it: so no text
can make an entry, and each reads back as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from windlass.core.address import SYSTEM

LOOKS_SO = re.compile(r"\\*###")
"""A line that has, or is given, a backslash before it."""


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
    return "".join(_entry(each) for each in entries)


def _entry(said: Said) -> str:
    body = "\n".join(f"\\{each}" if LOOKS_SO.match(each) else each for each in said.text.split("\n"))
    return f"### {said.time} [{said.name}]\n{body}\n\n"
