"""The word that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def near_miss(word: str, known: Iterable[str]) -> str:
    """`Did you mean …?`, or nothing."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"Did you mean {close[0]}?" if close else ""
