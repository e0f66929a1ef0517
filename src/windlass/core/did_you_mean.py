"""Guesses the word that was meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def near_miss(word: str, known: Iterable[str]) -> str:
    """`Did you mean …?`, or "". The same word in lower case, or with an instance, is nearest."""
    words = list(known)
    close = [other for other in words if word.lower() in (other, other.partition("@")[0])]
    close = close or difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    return f"Did you mean {close[0]}?" if close else ""
