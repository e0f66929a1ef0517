"""Who is meant by a request that names nobody: the agent whose trigger words stand in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence


def called_by(text: str, triggers: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Those of whose words one stands in a text, as whole words in any case; those with the most of them alone."""
    counts = {name: sum(_stands_in(word, text) for word in words) for name, words in triggers.items()}
    most = max(counts.values(), default=0)
    return tuple(name for name, count in counts.items() if count == most and most)


def _stands_in(phrase: str, text: str) -> bool:
    words = r"\s+".join(map(re.escape, phrase.split()))
    return bool(words) and re.search(rf"(?<!\w){words}(?!\w)", text, re.IGNORECASE) is not None


def candidates(triggers: Mapping[str, Sequence[str]], names: Iterable[str]) -> str:
    """Whom one could mean, in words for a person."""
    listed = (f"{name} ({', '.join(triggers[name])})" if triggers.get(name) else name for name in names)
    return ", ".join(listed)
