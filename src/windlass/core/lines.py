"""Bytes to lines, in bounded memory, however they were split."""

from __future__ import annotations

from dataclasses import dataclass, replace

LONGEST = 1_000_000
"""Bytes of one line that are looked at. The rest of a longer line is kept in the store, but not read."""


@dataclass(frozen=True, slots=True)
class Lines:
    """What is left of the last, unfinished line."""

    rest: bytes = b""
    skipping: bool = False
    """Inside a line that is too long: nothing of it is read until it ends."""

    def feed(self, content: bytes) -> tuple[Lines, list[str]]:
        """Take some bytes; return what is left over, and the lines that are whole now."""
        *whole, rest = (self.rest + content).split(b"\n")
        if whole and self.skipping:
            whole = whole[1:]
        elif self.skipping:
            return replace(self, rest=b""), []
        lines = [each[:LONGEST].removesuffix(b"\r").decode("utf-8", "replace") for each in whole]
        if len(rest) > LONGEST:
            return Lines(skipping=True), [*lines, rest[:LONGEST].decode("utf-8", "replace")]
        return Lines(rest), lines

    def end(self) -> list[str]:
        """The last line, when no newline will follow it."""
        return [self.rest.decode("utf-8", "replace")] if self.rest else []
