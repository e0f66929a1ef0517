"""Lines come out whole, however the bytes were split."""

from __future__ import annotations

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from windlass.core.runs.output_lines import LONGEST, LineSplitter, lines_of, lines_with


def read_all(parts: list[bytes]) -> list[str]:
    lines, found = LineSplitter(), ""
    for part in parts:
        lines, whole = lines.feed(part)
        found += whole
    return lines_of(found + lines.end())


@given(content=st.binary(max_size=200), cuts=st.lists(st.integers(0, 200), max_size=6))
def test_splitting_the_bytes_changes_nothing(content: bytes, cuts: list[int]) -> None:
    """Any way of cutting the same bytes gives the same lines."""
    places = [0, *sorted(cut for cut in cuts if cut < len(content)), len(content)]
    parts = [content[start:end] for start, end in pairwise(places)]

    assert read_all(parts) == read_all([content])


def test_carriage_returns_and_bad_bytes_do_no_harm() -> None:
    """CRLF ends a line, and invalid UTF-8 is shown as such."""
    assert read_all([b"one\r\ntwo \xff\nthree"]) == ["one", "two \N{REPLACEMENT CHARACTER}", "three"]


def test_a_line_that_is_too_long_is_cut_and_the_next_is_whole() -> None:
    """Memory stays bounded: the rest of an endless line is skipped, the following line is read."""
    lines, found = LineSplitter(), ""
    for _ in range(30):
        lines, whole = lines.feed(b"x" * (LONGEST // 10))
        found += whole
        assert len(lines.rest) <= LONGEST + LONGEST // 10
    lines, whole = lines.feed(b"tail\nnext\n")

    assert [each[:4] for each in lines_of(found + whole)] == ["xxxx", "next"]


def test_a_line_as_long_as_may_be_is_whole_and_a_longer_one_is_cut() -> None:
    """The limit counts for each line, wherever it stands among others that come with it."""
    for before in (b"", b"short\n", b"y" * 10 + b"\n"):
        lines = read_all([before + b"x" * LONGEST + b"\n" + b"z" * (LONGEST + 1) + b"\nlast\n"])

        assert [len(line) for line in lines[-3:]] == [LONGEST, LONGEST, 4]


@given(lines=st.lists(st.text("ab{\r ", max_size=4), max_size=8))
def test_only_lines_with_a_pattern_are_found(lines: list[str]) -> None:
    """Each line with one of the patterns is found once and in its order, also by how it begins; no other is."""
    text = "".join(f"{line}\n" for line in lines)

    found = lines_with(text, re.compile(r"\n[^{]"), re.compile("b"))

    wanted = [line for line in lines if "b" in line or not line.startswith("{")]
    assert [line for line in found if line] == [line for line in wanted if line]


def test_a_long_line_is_searched_once() -> None:
    """A line in which a pattern is found without end is passed over at its first."""
    assert lines_with("b" * LONGEST + "\nab\n", re.compile("b")) == ["b" * LONGEST, "ab"]
