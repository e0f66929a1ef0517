"""Words to troubles: what a program complains about, by what helps against it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from windlass.core.nouns.run import Hitch, Trouble

Patterns = tuple[tuple[Trouble, str], ...]
MOST_WORDS = 500
"""Letters of a complaint that are kept."""


def patterns(table: Mapping[Trouble, Iterable[str]]) -> Patterns:
    """Patterns by the trouble they tell of, the strongest first; compiled when a line is first held to them."""
    return tuple((kind, each) for kind, all_ in table.items() for each in all_)


def kind_of(words: str, known: Patterns) -> Trouble | None:
    """The trouble that these words tell of; letters of either size are the same."""
    return next((kind for kind, pattern in known if re.search(pattern, words, re.IGNORECASE)), None)


def hitch(kind: Trouble, words: str, until: float | None = None) -> Hitch:
    """A trouble in the program's own words, on one line."""
    return Hitch(kind, " ".join(words.split())[:MOST_WORDS], until)
