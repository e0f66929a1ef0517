"""What the daemon writes into its log."""

from __future__ import annotations

import logging

from windlass.daemon.__main__ import RedactedLog


def test_a_record_is_one_record() -> None:
    """Whatever an error repeats: only what is ours begins at the beginning of a line, and nothing steers a terminal."""
    words = "bad\n2026-01-01 ERROR: all is lost\x1b[2J"
    record = logging.LogRecord("windlass", logging.ERROR, "", 1, words, (), None)

    first, *rest = RedactedLog({}, ()).format(record).split("\n")

    assert first.endswith("ERROR windlass: bad")
    assert rest == ["    2026-01-01 ERROR: all is lost\\x1b[2J"]
