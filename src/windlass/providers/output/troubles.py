"""Words to troubles: what a program complains about, by what helps against it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from windlass.core.nouns.run import RunTrouble, TroubleKind

Patterns = tuple[tuple[TroubleKind, str], ...]
MOST_WORDS = 500
"""Letters of a complaint that are kept."""


def patterns(table: Mapping[TroubleKind, Iterable[str]]) -> Patterns:
    """Patterns by the trouble they tell of, the strongest first; compiled when a line is first held to them."""
    return tuple((kind, each) for kind, all_ in table.items() for each in all_)


def kind_of(words: str, known: Patterns) -> TroubleKind | None:
    """The trouble that these words tell of; letters of either size are the same."""
    return next((kind for kind, pattern in known if re.search(pattern, words, re.IGNORECASE)), None)


def run_trouble(kind: TroubleKind, words: str, until: float | None = None) -> RunTrouble:
    """A trouble in the program's own words, on one line."""
    return RunTrouble(kind, " ".join(words.split())[:MOST_WORDS], until)
