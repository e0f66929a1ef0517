"""Requests that name nobody, and whom their words call."""

from __future__ import annotations

import pytest

from windlass.core.agents.triggers import called_by, candidates

TRIGGERS = {"coder": ("implement", "fix the bug"), "reviewer": ("review", "look at"), "quiet": ()}


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("Implement the auth module", ("coder",)),
        ("please IMPLEMENT it", ("coder",)),
        ("Fix  the\nbug now", ("coder",)),
        ("reimplement it", ()),
        ("implementing", ()),
        ("Review it, then implement it", ("coder", "reviewer")),
        ("Review it, look at auth, then implement it", ("reviewer",)),
        ("", ()),
    ],
)
def test_words_call_agents(text: str, called: tuple[str, ...]) -> None:
    """Whole words, in any case; whoever is called by more of them is meant."""
    assert called_by(text, TRIGGERS) == called


def test_candidates_say_what_calls_them() -> None:
    """So that one can be chosen."""
    assert candidates(TRIGGERS, ["coder", "quiet"]) == "coder (implement, fix the bug), quiet"
