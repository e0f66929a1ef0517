"""Lines come out whole, however the bytes were split."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from windlass.core.runs.output_lines import LONGEST, LineSplitter


def read_all(parts: list[bytes]) -> list[str]:
    lines, found = LineSplitter(), []
    for part in parts:
        lines, whole = lines.feed(part)
        found += whole
    return found + lines.end()


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
    lines, found = LineSplitter(), []
    for _ in range(30):
        lines, whole = lines.feed(b"x" * (LONGEST // 10))
        found += whole
        assert len(lines.rest) <= LONGEST + LONGEST // 10
    lines, whole = lines.feed(b"tail\nnext\n")

    assert [each[:4] for each in [*found, *whole]] == ["xxxx", "next"]
