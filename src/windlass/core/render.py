"""Values as text for people and agents."""

from __future__ import annotations

import itertools
import re

from windlass.core.change import Change, CheckResult

TAIL = 12_000
"""How many characters of a check's output its author is shown: the last ones."""

_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 (but not tab and newline), delete, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional marks, overrides and isolates
    "\u2028\u2029\ufeff\ufff9-\ufffb\ud800-\udfff]"  # line separators, invisible marks, half characters
)
_BACKTICKS = re.compile("`+")


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


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def short(commit: str) -> str:
    """A commit as people write it."""
    return commit[:10]


def fenced(text: str) -> str:
    """Text as a Markdown code block that nothing in it can close."""
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text.rstrip(chr(10))}\n{fence}"


def rejection(change: Change, result: CheckResult, output: str) -> str:
    """What an author is told about failed checks: what failed, how to see it again, and the exact output."""
    reason = result.reason or f"exit code {result.exit_code}"
    return "\n".join(
        (
            f"Your change {change.id} ({change.title}) did not land: the checks did not pass ({reason}).",
            "They ran on the tree that main would have with your commits. To see it in your worktree:",
            "",
            fenced(f"{_take_main(change)}{result.command}"),
            "",
            *_shown(output),
            "",
            "Mend it, commit to your branch, and signal done again.",
        )
    )


def _take_main(change: Change) -> str:
    """The commands that put the tested tree into the author's worktree."""
    return f"git fetch origin && git merge --no-edit {change.candidate.before}\n" if change.candidate else ""


def _shown(output: str) -> tuple[str, ...]:
    tail = output[-TAIL:]
    if not tail.strip():
        return ("They printed nothing.",)
    left_out = len(output) - len(tail)
    said = f"The end of the output ({left_out} characters before it are left out):" if left_out else "The output:"
    return (said, "", fenced(tail))


def conflict_note(change: Change, main: str, conflict: str) -> str:
    """What an author is told when its change no longer fits onto main."""
    return "\n".join(
        (
            f"Your change {change.id} ({change.title}) did not land: it conflicts with {main}. Git says:",
            "",
            fenced(conflict[-TAIL:]),
            "",
            "Take main in, resolve the conflicts keeping the intent of both sides, and commit the merge:",
            "",
            fenced(f"git fetch origin && git merge origin/{main}"),
            "",
            "Then signal done again.",
        )
    )
