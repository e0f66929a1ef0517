"""Report each step as a line of JSON, which the provider `model` reads."""

from __future__ import annotations

import json
import sys
import time

from windlass.core.nouns.run import TroubleKind

LONGEST = 4000
"""Characters of a tool's arguments or answer that are reported."""
BEAT = 10.0
"""Seconds without a line after which one says that the run is alive."""


class ReportLines:
    """Standard output."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def session(self, session: str, model: str) -> None:
        self._tell("session", session=session, model=model)

    def said(self, text: str) -> None:
        if text.strip():
            self._tell("text", text=text)

    def called(self, tool: str, what: str) -> None:
        self._tell("call", tool=tool, what=what[:LONGEST])

    def answered(self, tool: str, text: str, *, failed: bool) -> None:
        self._tell("answer", tool=tool, text=text[:LONGEST], failed=failed)

    def used(self, *, read: int, cached: int, written: int, cost: float) -> None:
        """One request to the model is over."""
        self._tell("usage", input=read, cached=cached, output=written, cost=cost)

    def beat(self) -> None:
        """Say that the run is alive, if no line was written for a while."""
        if time.monotonic() - self._last >= BEAT:
            self._tell("beat")

    def result(self, text: str) -> None:
        self._tell("result", text=text)

    def error(self, trouble: TroubleKind, text: str, until: float | None = None) -> None:
        self._tell("error", trouble=str(trouble), text=text, until=until)

    def stopped(self) -> None:
        self._tell("stopped")

    def _tell(self, kind: str, **about: object) -> None:
        line = json.dumps({"type": kind, **about}, ensure_ascii=False).encode("utf-8", "replace")
        sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()
        self._last = time.monotonic()
