"""Reading a channel.md back, to see what it says and that nothing in it is forged."""

from __future__ import annotations

import re

from windlass.core.messages.channel_file import Said

_ESCAPED = re.compile(r"((?:^|\r) {0,3}\\*)\\###", re.MULTILINE)
_HEADING = re.compile(r"### (\d{2}:\d{2}:\d{2}) \[([^\[\]\r\n]*)\]")


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


def _close(found: list[Said], lines: list[str]) -> None:
    """Give the last entry its text: the lines below its heading, but for the empty one that we wrote."""
    if found:
        body = lines[:-1] if lines[-1:] == [""] else lines
        found[-1] = Said(found[-1].time, found[-1].name, _ESCAPED.sub(r"\1###", "\n".join(body)))
