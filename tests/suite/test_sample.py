"""A day's sample of the long matrices: repeatable, and all parts have their turn."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta

import pytest

import sample

MATRIX = sample.Matrix("numbers", 7)
BEGIN = date.fromordinal(7 * 100_000)


def test_every_case_has_its_turn_once_in_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """In as many days as there are parts, each case is played once."""
    monkeypatch.delenv(sample.LONG, raising=False)
    days = [BEGIN + timedelta(days=number) for number in range(MATRIX.parts)]
    played = Counter(case for day in days for case in MATRIX.of(range(100), day))
    assert played == dict.fromkeys(range(100), 1)


def test_few_cases_have_one_each_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """A matrix with fewer cases than parts is never empty: an empty one would be a skipped test."""
    monkeypatch.setenv(sample.LONG, "no")
    matrix = sample.Matrix("few", 6)
    days = [date(2026, 11, day) for day in range(1, 25)]

    assert {tuple(matrix.of(["a", "b"], day)) for day in days} == {("a",), ("b",)}


def test_the_order_of_the_parts_changes_from_round_to_round() -> None:
    """Whoever runs the tests on Mondays only meets every part as well: seven parts would never change otherwise."""
    mondays = {MATRIX.part(BEGIN + timedelta(weeks=number)) for number in range(100)}
    assert mondays == set(range(MATRIX.parts))


def test_a_day_can_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable names the day; the line for people says how."""
    monkeypatch.delenv(sample.LONG, raising=False)
    monkeypatch.setenv(sample.DAY, "2026-11-17")
    assert MATRIX.of(range(100)) == MATRIX.of(range(100), date(2026, 11, 17))
    assert sample.described().startswith("sample of 2026-11-17: histories ")
    assert "WINDLASS_TEST_DAY=2026-11-17 repeats it" in sample.described()


def test_a_long_run_plays_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--long` leaves nothing out."""
    monkeypatch.setenv(sample.LONG, "yes")
    assert MATRIX.of(range(100)) == list(range(100))
    assert "every case" in sample.described()
