"""Times, commits and anyone's text as people may see them. Every command shows some, so this imports no noun."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 (but not tab and newline), delete, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional marks, overrides and isolates
    "\u2028\u2029\ufeff\ufff9-\ufffb\ud800-\udfff]"  # line separators, invisible marks, half characters
)
_BREAK = re.compile("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
"""Whatever a program or a reader may take for the end of a line."""
_WORD = re.compile(r"[\w@%+=:,./-]+", re.ASCII)


def age(seconds: float) -> str:
    """A span of time in its largest unit, with the next one where that still matters: `3 s`, `1 h 5 min`."""
    left = max(0, int(seconds))
    for (name, size), (below, part) in itertools.pairwise(_UNITS):
        if left >= size:
            rest = left % size // part
            return f"{left // size} {name} {rest} {below}" if rest and name != "min" else f"{left // size} {name}"
    return f"{left} s"


def harmless(text: str) -> str:
    """Text that can't steer a terminal or mislead the eye: controls are shown as `\\x1b` and the like."""
    return _HARMFUL.sub(_escape, text)


def harmless_lines(text: str) -> str:
    """The same for a file that people look at; lines end as they do there."""
    return harmless(text.replace("\r\n", "\n"))


def one_name(text: str) -> str:
    """A name of a file or the like on one line, whatever is in it."""
    return harmless(text.replace("\n", "\\n").replace("\t", "\\t"))


def hanging(text: str) -> str:
    """Text whose further lines are indented: none of them looks like the beginning of something else."""
    return _BREAK.sub(lambda found: f"{found[0]}    ", text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def word(text: str) -> str:
    """A text as one word of a shell, whatever is in it."""
    return text if _WORD.fullmatch(text) else "'" + text.replace("'", "'\"'\"'") + "'"


def some(names: Sequence[str], most: int = 5) -> str:
    """The first few of many names on one line, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(one_name, names[:most])) + more


def short(commit: str) -> str:
    """A commit as people write it."""
    return commit[:10]
