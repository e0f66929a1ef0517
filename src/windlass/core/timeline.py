"""The timeline of a channel as `channel.md` shows it: `### HH:MM:SS [name]`, and the text below.

A line of a text that looks like a heading of ours, or that is escaped already, gets a backslash before it: so no text
can make an entry, and each reads back as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from windlass.core.address import SYSTEM

_HEADING = re.compile(r"### (\d{2}:\d{2}:\d{2}) \[([^\[\]\r\n]*)\]")
_LOOKS_SO = re.compile(r"\\*###")


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


def read_timeline(text: str) -> list[Said]:
    """The entries of such a text; what stands above the first is none."""
    found: list[Said] = []
    lines: list[str] = []
    for line in text.removesuffix("\n").split("\n"):
        if heading := _HEADING.fullmatch(line):
            _close(found, lines)
            found.append(Said(heading[1], heading[2], ""))
            lines = []
        else:
            lines.append(line)
    _close(found, lines)
    return found


def _entry(said: Said) -> str:
    body = "\n".join(f"\\{each}" if _LOOKS_SO.match(each) else each for each in said.text.split("\n"))
    return f"### {said.time} [{said.name}]\n{body}\n\n"


def _close(found: list[Said], lines: list[str]) -> None:
    """Give the last entry its text: the lines below its heading, but for the empty one that we wrote."""
    if found:
        body = lines[:-1] if lines[-1:] == [""] else lines
        text = "\n".join(each[1:] if each.startswith("\\") and _LOOKS_SO.match(each) else each for each in body)
        found[-1] = Said(found[-1].time, found[-1].name, text)
