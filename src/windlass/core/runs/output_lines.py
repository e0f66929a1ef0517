"""Bytes to lines, in bounded memory, however they were split."""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass, replace

LONGEST = 1_000_000
"""Bytes of one line that are looked at. The rest of a longer line is kept in the store, but not read."""
NOT_TEXT = "has bytes that are not UTF-8"
ZEROS = "has NUL bytes"
TOO_LONG = f"has a line of more than {LONGEST} bytes, the rest of which was not read"


@dataclass(frozen=True, slots=True)
class LineSplitter:
    """The rest of the last, unfinished line."""

    rest: bytes = b""
    skipping: bool = False
    """Inside a line that is too long: nothing of it is read until it ends."""
    odd: frozenset[str] = frozenset()
    """Oddities of the lines so far."""

    def feed(self, content: bytes) -> tuple[LineSplitter, str]:
        """Take some bytes; return what is left over, and the lines that are whole now, each with its newline."""
        whole, newline, rest = (self.rest + content).rpartition(b"\n")
        if self.skipping and newline:
            _, newline, whole = whole.partition(b"\n")
        elif self.skipping:
            return replace(self, rest=b""), ""
        text, oddities = _read(whole) if newline else ("", frozenset())
        odd = self.odd | oddities
        if len(rest) > LONGEST:
            return LineSplitter(
                skipping=True, odd=odd | {TOO_LONG}
            ), f"{text}{rest[:LONGEST].decode('utf-8', 'replace')}\n"
        return LineSplitter(rest, odd=odd), text

    def end(self) -> str:
        """The last line, when no newline will follow it."""
        return f"{_beginning(self.rest)}\n" if self.rest else ""


def lines_of(text: str) -> list[str]:
    """The lines of a text that has a newline after each."""
    return text.split("\n")[:-1]


def lines_with(text: str, *patterns: re.Pattern[str]) -> list[str]:
    """Those lines of such a text that one of the patterns is in, in their order: the others cost next to nothing.

    A pattern may begin with the newline before its line.
    """
    text = f"\n{text}"
    found: dict[int, int] = {}
    for pattern in patterns:
        end = 0
        while match := pattern.search(text, end):
            start = text.rfind("\n", 0, match.start() + 1) + 1
            end = found[start] = text.index("\n", start)
    return [text[start : found[start]] for start in sorted(found)]


def _read(whole: bytes) -> tuple[str, Set[str]]:
    """Whole lines as text, and what is strange about them. All are decoded in one go: there may be very many."""
    found = {ZEROS} if b"\0" in whole else set()
    try:
        text = f"{whole.decode()}\n"
    except UnicodeDecodeError:
        found.add(NOT_TEXT)
        text = f"{whole.decode('utf-8', 'replace')}\n"
    if _is_long(whole):
        text = "".join(f"{_beginning(line)}\n" for line in whole.split(b"\n"))
    return text.replace("\r\n", "\n") if "\r" in text else text, found


def _beginning(line: bytes) -> str:
    """As much of a line as is looked at."""
    return line[:LONGEST].decode("utf-8", "replace")


def _is_long(whole: bytes) -> bool:
    """Whether one of these lines is too long. It goes by the longest strides, not by lines: there may be very many."""
    start = 0
    while len(whole) - start > LONGEST:
        start = whole.rfind(b"\n", start, start + LONGEST + 1) + 1
        if not start:
            return True
    return False
