"""Results as a table: for people in a terminal, and for benchmarks/README.md with the date and the load."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from measure import Result

README = Path(__file__).with_name("README.md")
HEAD = ("name", "ours", "floor", "ratio", "goal", "met", "what")


@dataclass(frozen=True, slots=True)
class Missing:
    """A benchmark that could not run, and why: it is never left out in silence."""

    name: str
    why: str


Line = Result | Missing


def table(lines: Sequence[Line]) -> list[str]:
    """For a terminal, with columns of one width."""
    rows = [tuple(name.upper() for name in HEAD), *map(cells, lines)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(HEAD))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def cells(line: Line) -> tuple[str, ...]:
    """One line's words, as many as HEAD has."""
    if isinstance(line, Missing):
        return line.name, *("-",) * 4, "not measured", line.why
    ours, floor = _value(line.ours, line.unit), "-"
    ratio, goal = "-", _value(line.goal, line.unit)
    if line.floor is not None and line.ratio is not None:
        floor, ratio, goal = _value(line.floor, line.unit), f"{line.ratio:.2f}", f"{line.goal:.3g}"
    goal = f"{'≥' if line.at_least else '≤'} {goal}"
    return line.name, ours, floor, ratio, goal, "yes" if line.met else "no", line.what


def _value(value: float, unit: str) -> str:
    number = f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{number} {unit}".strip()


def write(lines: Sequence[Line], *, quick: bool) -> None:
    """Put the lines into the measured table; those of the same names are replaced, and the others stay."""
    when = f"{taken()}{' (quick)' if quick else ''}"
    rows = {row.split(" | ")[0].removeprefix("| "): row for row in _between("measured") if row.startswith("| ")}
    rows |= {cells(line)[0]: markdown((*cells(line), when)) for line in lines}
    head = markdown((*HEAD, "taken"))
    rows = {name: row for name, row in rows.items() if name not in {"name", "---"}}
    replace("measured", [head, markdown(("---",) * (len(HEAD) + 1)), *rows.values()])


def markdown(words: Sequence[str]) -> str:
    """A row of a table."""
    return f"| {' | '.join(words)} |"


def taken() -> str:
    """The day, and what else the machine had to do."""
    return f"{time.strftime('%Y-%m-%d')}, load {os.getloadavg()[1]:.1f}"


def machine() -> str:
    """What it was taken on, without a name."""
    return f"{os.cpu_count()} processors, {platform.system()} {platform.machine()}, Python {platform.python_version()}"


def replace(name: str, lines: Sequence[str]) -> None:
    """Write lines between the two markers of this name in the README."""
    begin, end = _markers(name)
    text = README.read_text()
    head, _, rest = text.partition(begin)
    _, _, tail = rest.partition(end)
    README.write_text("\n".join([f"{head}{begin}", *lines, f"{end}{tail}"]))


def _between(name: str) -> list[str]:
    begin, end = _markers(name)
    text = README.read_text()
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"{README.name} needs the markers {begin} and {end}, each once.")
    return text.partition(begin)[2].partition(end)[0].strip().splitlines()


def _markers(name: str) -> tuple[str, str]:
    return f"<!-- {name}: begin (written by the command) -->", f"<!-- {name}: end -->"
