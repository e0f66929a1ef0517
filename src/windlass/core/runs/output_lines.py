"""Bytes to lines, in bounded memory, however they were split."""

from __future__ import annotations

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

    def feed(self, content: bytes) -> tuple[LineSplitter, list[str]]:
        """Take some bytes; return what is left over, and the lines that are whole now."""
        *whole, rest = (self.rest + content).split(b"\n")
        if whole and self.skipping:
            whole = whole[1:]
        elif self.skipping:
            return replace(self, rest=b""), []
        lines, oddities = _read(whole)
        odd = self.odd | oddities
        if len(rest) > LONGEST:
            lines.append(rest[:LONGEST].decode("utf-8", "replace"))
            return LineSplitter(skipping=True, odd=odd | {TOO_LONG}), lines
        return LineSplitter(rest, odd=odd), lines

    def end(self) -> list[str]:
        """The last line, when no newline will follow it."""
        return [self.rest.decode("utf-8", "replace")] if self.rest else []


def _read(whole: list[bytes]) -> tuple[list[str], set[str]]:
    """Lines as text, and what is strange about them. All are decoded in one go: there may be very many."""
    if not whole:
        return [], set()
    content = b"\n".join(whole)
    found = {ZEROS} if b"\0" in content else set()
    try:
        text = content.decode()
    except UnicodeDecodeError:
        found.add(NOT_TEXT)
        text = content.decode("utf-8", "replace")
    if max(map(len, whole)) > LONGEST:
        return [line[:LONGEST].removesuffix(b"\r").decode("utf-8", "replace") for line in whole], found
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines, found
