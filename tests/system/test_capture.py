"""Keeping the beginning and the end of an output."""

from __future__ import annotations

import pytest

from windlass.system.capture import Capture


@pytest.mark.parametrize("step", [1, 2, 7, 1000])
@pytest.mark.parametrize("limit", [0, 1, 10, 100])
def test_a_capture_is_the_same_in_pieces_of_any_size(step: int, limit: int) -> None:
    """However it arrives, what is kept are the first and last bytes, and the count of the rest is right."""
    whole = bytes(range(250)) * 2
    capture = Capture(limit)
    for start in range(0, len(whole), step):
        capture.add(whole[start : start + step])
    head, tail = whole[: limit // 3], whole[len(whole) - (limit - limit // 3) :]
    assert capture.kept() == head + b"\n[... %d bytes left out ...]\n" % (500 - limit) + tail
