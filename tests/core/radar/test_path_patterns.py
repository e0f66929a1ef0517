"""Declared paths: what they name, and when two of them meet."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.errors import BadInput
from windlass.core.radar.path_patterns import LONGEST, MOST, checked, meet, names


class TestNames:
    @pytest.mark.parametrize(
        ("pattern", "path"),
        [
            ("src/auth", "src/auth"),
            ("src/auth", "src/auth/login.py"),
            ("src/auth/**", "src/auth/deep/login.py"),
            ("src/*.py", "src/login.py"),
            ("src/**/*.py", "src/login.py"),
            ("src/**/*.py", "src/a/b/login.py"),
            ("**/test_*.py", "test_a.py"),
            ("**/test_*.py", "x/test_a.py"),
            ("src/?.py", "src/a.py"),
            ("**", "anything/at/all"),
        ],
    )
    def test_a_pattern_names(self, pattern: str, path: str) -> None:
        """A file, what is in a folder, and what the wildcards allow."""
        assert names(pattern, path)

    @pytest.mark.parametrize(
        ("pattern", "path"),
        [
            ("src/auth", "src/authority.py"),
            ("src/auth", "lib/src/auth"),
            ("src/*.py", "src/a/login.py"),
            ("src/?.py", "src/ab.py"),
            ("**/test_*.py", "xtest_a.py"),
            ("src/**/*.py", "src/login.pyc"),
        ],
    )
    def test_a_pattern_does_not_name(self, pattern: str, path: str) -> None:
        """What only looks like it."""
        assert not names(pattern, path)

    def test_a_file_with_a_star_in_its_name_is_itself(self) -> None:
        """Only patterns have wildcards."""
        assert names("src/*", "src/*") and not names("src/a", "src/*")


class TestMeet:
    @pytest.mark.parametrize(
        ("one", "other", "meets"),
        [
            ("src/auth", "src/**", True),
            ("src/auth/login.py", "src/auth", True),
            ("src/*.py", "src/a*", True),
            ("**/*.md", "docs", True),
            ("src/auth", "src/web", False),
            ("src/*.py", "src/*.md/x", False),
            ("a*c", "ab?d", False),
        ],
    )
    def test_two_patterns_meet_where_a_file_could_be_both(self, one: str, other: str, *, meets: bool) -> None:
        """In either order."""
        assert meet(one, other) is meets
        assert meet(other, one) is meets

    @given(st.text("ab/*?", min_size=1, max_size=7), st.text("ab/*?", min_size=1, max_size=7), st.data())
    def test_whatever_both_name_makes_them_meet(self, one: str, other: str, data: st.DataObject) -> None:
        """There is no file that two name which do not meet."""
        path = data.draw(st.from_regex(re.compile(_regex(one), re.ASCII), fullmatch=True, alphabet="ab/"))
        assert names(one, path)
        if names(other, path):
            assert meet(one, other) and meet(other, one)

    @given(st.text("ab/*?", min_size=1, max_size=8), st.text("ab/", min_size=1, max_size=8))
    def test_naming_is_what_a_plain_expression_says(self, pattern: str, path: str) -> None:
        """The same as the well-known translation of such patterns."""
        assert names(pattern, path) == bool(re.fullmatch(_regex(pattern), path))

    def test_many_wildcards_take_no_time(self) -> None:
        """What would take an expression for ever is decided by looking at each pair of places once."""
        assert not meet("*a" * 100 + "b", "a" * 200 + "c")


def _regex(pattern: str) -> str:
    """A pattern as an expression; a folder's name stands for what is in it."""
    parts = re.split(r"((?:(?<=/)|^)\*\*/|\*\*|\*|\?)", pattern)
    words = {"**/": "(?:[ab/]*/)?", "**": "[ab/]*", "*": "[ab]*", "?": "[ab]"}
    return "".join(words.get(part, re.escape(part)) for part in parts) + "(?:/[ab/]*)?"


class TestChecked:
    def test_patterns_are_put_into_one_form(self) -> None:
        """A leading dot and a trailing slash mean nothing; each stands once."""
        assert checked(["./src/auth/", "src/auth", " docs "]) == ("src/auth", "docs")

    @pytest.mark.parametrize("bad", ["", "  ", "/etc", "../x", "a/../b", "a//b", "x" * (LONGEST + 1), "a\nb", "a\0b"])
    def test_what_leads_out_or_is_no_path_is_refused(self, bad: str) -> None:
        """With an example of what is meant."""
        with pytest.raises(BadInput) as caught:
            checked([bad])
        assert "src/auth" in caught.value.hint

    def test_too_many_are_refused(self) -> None:
        """A folder says more than a hundred files."""
        with pytest.raises(BadInput, match="at most"):
            checked(f"f{number}" for number in range(MOST + 1))
