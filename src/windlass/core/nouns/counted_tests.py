"""How many tests a check has run, where its output tells."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tally:
    """What a test runner counted."""

    ran: int
    skipped: int = 0

    def __str__(self) -> str:
        return f"{self.ran} ran" + (f", {self.skipped} skipped" if self.skipped else "")


def tally(output: str) -> Tally | None:
    """The count at the end of an output, by the first runner whose words it has; several summaries are added up."""
    text = _ESCAPES.sub("", output[-_LATEST:])
    return next((found for read in _RUNNERS if (found := read(text))), None)


def complaint(before: Tally | None, after: Tally | None) -> str:
    """How many fewer tests ran and how many more were skipped than before; nothing if neither."""
    if before is None or after is None:
        return ""
    fewer, skipped = before.ran - after.ran, after.skipped - before.skipped
    parts = [f"{fewer} fewer ran"] * (fewer > 0) + [f"{skipped} more are skipped"] * (skipped > 0)
    return ", ".join(parts)


def lost(before: Tally | None, after: Tally | None) -> str:
    """Which tests are gone, after a change's name and "but"; nothing if none are, or nobody has counted before."""
    if before is None or not before.ran:
        return ""
    if after is None:
        return f"its checks report no tests, and there were {before.ran}"
    return f"{after.ran} tests run with it, and there were {before.ran}" if after.ran < before.ran else ""


_LATEST = 100_000
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_PYTEST = re.compile(r"^=*\s?((?:\d+ [a-z]+(?:, )?)+) in [\d.]+s", re.MULTILINE)
_UNITTEST = re.compile(r"^Ran (\d+) tests? in .*$(?:\s+(?:OK|FAILED)(?: \((.*)\))?)?", re.MULTILINE)
_JEST = re.compile(r"^\s*Tests:?\s+(.*?\d+ (?:passed|failed).*)$", re.MULTILINE)
_CARGO = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", re.MULTILINE)
_TAP = re.compile("^(?:#|\N{INFORMATION SOURCE}) (pass|fail|skipped) (\\d+)$", re.MULTILINE)
_WORD = re.compile(r"(\d+) ([a-z]+)")
_RAN = ("passed", "failed", "xfailed", "xpassed", "pass", "fail")
_SKIPPED = ("skipped", "todo", "pending", "deselected")


def _words(found: list[tuple[str, str]]) -> Tally | None:
    ran = sum(int(number) for number, word in found if word in _RAN)
    skipped = sum(int(number) for number, word in found if word in _SKIPPED)
    return Tally(ran, skipped) if ran or skipped else None


def _pytest(text: str) -> Tally | None:
    return _words([pair for line in _PYTEST.findall(text) for pair in _WORD.findall(line)])


def _unittest(text: str) -> Tally | None:
    found = _UNITTEST.findall(text)
    skipped = sum(int(number) for _, notes in found for number in re.findall(r"skipped=(\d+)", notes))
    return Tally(sum(int(number) for number, _ in found) - skipped, skipped) if found else None


def _jest(text: str) -> Tally | None:
    return _words([pair for line in _JEST.findall(text)[-1:] for pair in _WORD.findall(line)])


def _cargo(text: str) -> Tally | None:
    found = [tuple(map(int, numbers)) for numbers in _CARGO.findall(text)]
    ran, skipped = sum(passed + failed for passed, failed, _ in found), sum(ignored for _, _, ignored in found)
    return Tally(ran, skipped) if found else None


def _tap(text: str) -> Tally | None:
    return _words([(number, word) for word, number in _TAP.findall(text)])


_RUNNERS: tuple[Callable[[str], Tally | None], ...] = (_pytest, _unittest, _cargo, _jest, _tap)
