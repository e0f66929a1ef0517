"""Values as text: ages, harmless text, and what authors are told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.display import age, harmless, short
from windlass.core.nouns.change import Candidate, Change, CheckResult
from windlass.core.render import TAIL, conflict_note, fenced, red_main, rejection

CHANGE = Change(id="c3", project="p", branch="work/otter", head="abc", title="Fix the race")
RESULT = CheckResult(
    command="pytest -q", tree="t", passed=False, exit_code=1, seconds=1.0, started_at=0.0, reason="exit code 1"
)


class TestAge:
    @pytest.mark.parametrize(
        ("seconds", "words"),
        [
            (-5, "0 s"),
            (0.4, "0 s"),
            (3.9, "3 s"),
            (59.99, "59 s"),
            (60, "1 min"),
            (119, "1 min"),
            (120, "2 min"),
            (3599, "59 min"),
            (3600, "1 h"),
            (3659, "1 h"),
            (3900, "1 h 5 min"),
            (86_399, "23 h 59 min"),
            (86_400, "1 d"),
            (2 * 86_400 + 3 * 3600 + 59, "2 d 3 h"),
        ],
    )
    def test_an_age_is_told_in_the_units_that_matter(self, seconds: float, words: str) -> None:
        """One unit, or two where the second one still says something."""
        assert age(seconds) == words


class TestHarmless:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("plain\ttext\nnext … é 漢 👩‍👩‍👧", "plain\ttext\nnext … é 漢 👩‍👩‍👧"),
            ("\x1b[2J\x1b]52;c;x\x07", "\\x1b[2J\\x1b]52;c;x\\x07"),
            ("a\rb", "a\\x0db"),
            ("\x9b31m", "\\x9b31m"),
            ("\x00\x7f\x85", "\\x00\\x7f\\x85"),
            ("\u202etxt.exe\u202c", "\\u202etxt.exe\\u202c"),
            ("\u2066x\u2069\u200f", "\\u2066x\\u2069\\u200f"),
            ("a\u2028b\ufeff", "a\\u2028b\\ufeff"),
            ("\ud800", "\\ud800"),
        ],
        ids=ascii,
    )
    def test_what_steers_a_terminal_is_shown_instead(self, text: str, shown: str) -> None:
        """Text in any language stays; controls become visible."""
        assert harmless(text) == shown

    @given(st.text(st.characters(exclude_categories=())))
    def test_nothing_harmful_is_left(self, text: str) -> None:
        """Whatever goes in can be printed, line by line, as UTF-8."""
        shown = harmless(text)

        assert shown.encode().decode() == shown
        assert all(each in "\n\t" or (each >= " " and not "\x7f" <= each <= "\x9f") for each in shown)
        assert harmless(shown) == shown


class TestFence:
    @given(st.text("`~a\n", max_size=60))
    def test_no_text_closes_its_own_fence(self, text: str) -> None:
        """The only line that could end the block is its last one."""
        first, *inside, last = fenced(text).split("\n")

        assert first == f"{last}text"
        assert not any(each.strip().startswith(last) for each in inside)


class TestNotes:
    def test_a_rejection_says_what_failed_and_how_to_see_it(self) -> None:
        """The reason, the exact commands and the exact output."""
        change = replace(CHANGE, candidate=Candidate(commit="a", tree="t", before="b" * 40, commits=(), files=()))

        told = rejection(change, RESULT, "E   assert 1 == 2\n  indented <b>\n")

        assert told.startswith("Your change c3 (Fix the race) did not land: the checks did not pass (exit code 1).\n")
        assert f"git fetch origin && git merge --no-edit {'b' * 40}\npytest -q\n" in told
        assert "\nE   assert 1 == 2\n  indented <b>\n```" in told
        assert told.endswith("Fix it, commit to your branch, and signal done again.")

    def test_long_output_keeps_its_end(self) -> None:
        """The end is where the error is; how much is missing is said."""
        told = rejection(CHANGE, RESULT, "x" * 5000 + "y" * (TAIL - 5) + "\nEND!")

        assert "(5000 characters before it are left out)" in told
        assert "left out):\n\n```text\nyyy" in told
        assert "y\nEND!\n```" in told

    def test_silence_is_said(self) -> None:
        """A check that printed nothing has no empty block."""
        assert "They printed nothing." in rejection(CHANGE, replace(RESULT, reason=""), " \n")

    @pytest.mark.parametrize(("keeper", "told"), [("bubblewrap", True), ("", False)])
    def test_a_sandbox_around_the_checks_is_named(self, keeper: str, told: bool) -> None:
        """What it hides may be the reason."""
        result = replace(RESULT, sandbox=keeper)
        for text in (rejection(CHANGE, result, ""), red_main("main", result, "")):
            assert ("in a sandbox without the person's home" in text) == told

    def test_a_conflict_is_shown_with_the_way_out(self) -> None:
        """What git said, and the command that brings main in, whatever main is called."""
        told = conflict_note(CHANGE, "trunk", "CONFLICT (content): Merge conflict in a.txt")

        assert told.startswith("Your change c3 (Fix the race) did not land: it conflicts with trunk.")
        assert "CONFLICT (content): Merge conflict in a.txt" in told
        assert "git fetch origin && git merge origin/trunk" in told

    def test_a_commit_is_shortened(self) -> None:
        """Ten characters, as people write it."""
        assert short("0123456789abcdef") == "0123456789"
