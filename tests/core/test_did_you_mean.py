"""The word that was probably meant."""

from __future__ import annotations

import pytest

from windlass.core.did_you_mean import near_miss

KNOWN = ("coder", "tester", "replier@a-long-instance", "Makefile")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("codr", "coder"),
        ("CODER", "coder"),
        ("replier", "replier@a-long-instance"),
        ("Makefil", "Makefile"),
        ("nothing-like-it", ""),
    ],
)
def test_slips_capitals_and_a_missing_instance_are_seen(word: str, meant: str) -> None:
    """What is near in letters; the same word is nearer still."""
    assert near_miss(word, KNOWN) == (f"Did you mean {meant}?" if meant else "")
