"""Finds the agent for a message that names nobody: the one whose trigger words it contains."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence


def called_by(text: str, triggers: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The agents with the most trigger words in a text; whole words count, in any case."""
    counts = {name: sum(_contains(text, phrase) for phrase in phrases) for name, phrases in triggers.items()}
    most = max(counts.values(), default=0)
    return tuple(name for name, count in counts.items() if count == most and most)


def _contains(text: str, phrase: str) -> bool:
    words = r"\s+".join(map(re.escape, phrase.split()))
    return bool(words) and re.search(rf"(?<!\w){words}(?!\w)", text, re.IGNORECASE) is not None


def candidates(triggers: Mapping[str, Sequence[str]], names: Iterable[str]) -> str:
    """The agents with their trigger words, for a person."""
    return ", ".join(f"{name} ({', '.join(triggers[name])})" if triggers.get(name) else name for name in names)
