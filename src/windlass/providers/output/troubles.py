"""Finds the trouble that a program's words tell of, by its kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from windlass.core.nouns.run import RunTrouble, TroubleKind
from windlass.core.runs.provider import LineReading

Patterns = tuple[tuple[TroubleKind, str], ...]
MOST_WORDS = 500
"""Characters of a complaint that are kept."""


def patterns(table: Mapping[TroubleKind, Iterable[str]]) -> Patterns:
    """Patterns by the kind of trouble, the strongest first; `re` compiles each at its first use."""
    return tuple((kind, pattern) for kind, found in table.items() for pattern in found)


def kind_of(words: str, known: Patterns) -> TroubleKind | None:
    """The kind of trouble that these words tell of, in any case."""
    return next((kind for kind, pattern in known if re.search(pattern, words, re.IGNORECASE)), None)


def run_trouble(kind: TroubleKind, words: str, until: float | None = None) -> RunTrouble:
    """A trouble in the program's own words, on one line."""
    return RunTrouble(kind, " ".join(words.split())[:MOST_WORDS], until)


def trouble_in(words: str, known: Patterns) -> RunTrouble | None:
    """The trouble that these words tell of."""
    kind = kind_of(words, known)
    return run_trouble(kind, words) if kind else None


def read_plain(line: str, known: Patterns = ()) -> LineReading:
    """A line for people, with the trouble that it tells of."""
    return LineReading(text=line, trouble=trouble_in(line, known))
