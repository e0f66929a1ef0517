"""Reading from a check's output how many tests it ran."""

from __future__ import annotations

import pytest

from windlass.core.nouns.counted_tests import Tally, complaint, tally


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ("....\n=== 12 passed, 2 skipped, 1 warning in 0.31s ===\n", Tally(12, 2)),
        ("\x1b[32m\x1b[1m3 passed\x1b[0m\x1b[32m in 0.01s\x1b[0m\n", Tally(3)),
        ("1 failed, 4 passed in 2.00s", Tally(5)),
        ("Ran 7 tests in 0.010s\n\nOK (skipped=2)\n", Tally(5, 2)),
        ("Ran 1 test in 0.010s\n\nFAILED (failures=1)\n", Tally(1)),
        ("Tests:       1 failed, 2 skipped, 9 passed, 12 total\n", Tally(10, 2)),
        ("      Tests  5 passed | 1 skipped (6)\n", Tally(5, 1)),
        ("test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured\n" * 2, Tally(6, 2)),
        ("# tests 4\n# pass 3\n# fail 0\n# skipped 1\n", Tally(3, 1)),
        ("all is well\n", None),
        ("", None),
    ],
)
def test_the_runners_people_use_are_understood(output: str, found: Tally | None) -> None:
    """What no runner says is not guessed."""
    assert tally(output) == found


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (Tally(10), Tally(10), ""),
        (Tally(10), Tally(12, 0), ""),
        (Tally(10), Tally(8, 2), "2 fewer ran, 2 more are skipped"),
        (Tally(10, 1), Tally(10, 2), "1 more are skipped"),
        (None, Tally(1), ""),
        (Tally(1), None, ""),
    ],
)
def test_less_than_there_was_is_said(before: Tally | None, after: Tally | None, words: str) -> None:
    """More tests are nothing to mention; where one side is unknown, nothing is claimed."""
    assert complaint(before, after) == words
