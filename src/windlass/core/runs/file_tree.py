"""A repository's files in a few lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from windlass.core.display import one_name

DEEPEST = 3
MOST = 120
"""Lines."""
LONGEST = 80
"""Characters of one name."""


@dataclass(slots=True)
class _Branch:
    """A folder: how many files are in it, and what is below it."""

    count: int = 0
    below: dict[str, _Branch] = field(default_factory=dict)


def outline(paths: Iterable[str], *, cut: bool = False) -> str:
    """The file tree as far down as fits, folders with how many files they hold."""
    top = _Branch()
    for path in paths:
        at = top
        for part in path.split("/"):
            at.count += 1
            at = at.below.setdefault(part, _Branch())
    if not top.count:
        return "(no files yet)"
    depth = DEEPEST
    while depth > 1 and sum(1 for _ in _lines(top, depth)) > MOST:
        depth -= 1
    lines = [*_lines(top, depth)]
    left_out = len(lines) - MOST
    shown = [*lines[:MOST], *([f"… and {left_out} more"] if left_out > 0 else [])]
    return "\n".join([*shown, *(["… (there are more files than could be listed)"] if cut else [])])


def _lines(branch: _Branch, depth: int, indent: str = "") -> Iterator[str]:
    for name, child in sorted(branch.below.items(), key=lambda pair: (not pair[1].below, pair[0])):
        shown = one_name(name)
        shown = shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"
        if not child.below:
            yield f"{indent}{shown}"
            continue
        yield f"{indent}{shown}/" + (f" ({child.count} file{'s' * (child.count != 1)})" if depth == 1 else "")
        if depth > 1:
            yield from _lines(child, depth - 1, f"{indent}  ")
