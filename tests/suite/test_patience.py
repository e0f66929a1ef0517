"""Deadlines grow with the machine's slowness, also where it becomes slow on the way."""

from __future__ import annotations

import pytest

import patience


def test_a_deadline_is_as_many_times_longer_as_the_machine_is_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable is what was measured when the suite began."""
    monkeypatch.setenv(patience.SLOWNESS, "7")
    assert patience.seconds(3) == 21


def test_what_is_measured_has_bounds() -> None:
    """A fast machine waits no less than is written down, a stuck one not for ever."""
    assert patience.LEAST <= patience.measure() <= patience.MOST


def test_a_machine_that_became_slower_is_given_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """When time is up, the machine is measured again: a hundred times slower, it is not up."""
    monkeypatch.setenv(patience.SLOWNESS, "1")
    monkeypatch.setattr(patience, "measure", lambda: 100.0)
    deadline = patience.Deadline(0.0)
    assert not deadline.passed()
    assert deadline.passed(), "it is no slower than it was"


def test_waiting_ends_with_what_was_found_or_names_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first thing that counts as true is the answer; nothing in time is a failure, unless a test wants to know."""
    monkeypatch.setattr(patience, "measure", lambda: 1.0)
    found = iter(["", "", "here"])
    assert patience.until(lambda: next(found), "words", pause=0) == "here"
    assert patience.until(lambda: "", "words", within=0, fails=False) == ""
    with pytest.raises(AssertionError, match="in vain for words"):
        patience.until(lambda: "", "words", within=0)
