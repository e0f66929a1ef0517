"""Output: aligned, no wider than the terminal, coloured only there, and without harmful characters."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TextIO

from windlass.core.display import age, harmless
from windlass.core.files.problems import FileProblem

Row = Mapping[str, Any]

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_COLOURS = {
    **dict.fromkeys(("running", "testing"), "cyan"),
    **dict.fromkeys(("completed", "landed", "done"), "green"),
    **dict.fromkeys(("waiting", "held", "queued", "asked", "warning"), "yellow"),
    **dict.fromkeys(("error", "failed", "crashed", "rejected"), "red"),
}
_READABLE = 16
"""Cells that a text needs to be readable: below that, spare columns are left out."""
_NARROWEST = 4
"""Cells that every column keeps."""
_GAP = "  "


def say(text: str = "") -> None:
    """Write one or several lines to standard output, at once."""
    if sys.stdout:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def tell(text: str) -> None:
    """Write to standard error, for notes beside the answer; a closed stream is no failure."""
    with suppress(OSError):
        if sys.stderr:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()


def say_json(value: Any) -> None:
    """Write JSON for programs; ASCII only, so that no text can control a terminal."""
    say(json.dumps(value, indent=2))


def say_answer(answer: Any, text: str, *, as_json: bool) -> None:
    """An answer: all of it for programs, or a text for people."""
    say_json(answer) if as_json else say(text)


def say_items(answer: Row, columns: Sequence[Column], none: str, *notes: str, as_json: bool) -> None:
    """The items of an answer for programs; or for people as a table, with notes and how old it is."""
    if as_json:
        say_json(answer["items"])
        return
    shown = "\n".join(table(columns, answer["items"])) if answer["items"] else none
    for text in filter(None, (shown, *map(paragraph, notes), as_of(answer))):
        say(text)


def say_parts(*parts: Sequence[str]) -> None:
    """Write parts of a page, each with an empty line after it; those without lines are left out."""
    for part in filter(None, parts):
        say("\n".join(part) + "\n")


def say_json_line(value: Any) -> None:
    say(json.dumps(value, separators=(",", ":")))


def on_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def can_redraw(stream: TextIO | None) -> bool:
    """Whether a line on this stream can be overwritten."""
    return on_terminal(stream) and os.environ.get("TERM") != "dumb"


def coloured(stream: TextIO | None) -> bool:
    """Colour only on a terminal, and not where it is unwanted."""
    return can_redraw(stream) and not os.environ.get("NO_COLOR")


def redraw(stream: TextIO, text: str) -> None:
    """Overwrite the current line."""
    stream.write(f"\r\x1b[2K{text}")
    stream.flush()


def clear() -> None:
    """Clear the terminal; elsewhere, print an empty line."""
    say("\x1b[H\x1b[2J" if can_redraw(sys.stdout) else "")


def paint(text: str, colour: str) -> str:
    """Text for standard output in a colour, if colours are wanted there."""
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if text and colour and coloured(sys.stdout) else text


def paint_state(text: str) -> str:
    """A status, state or outcome in its colour."""
    return paint(text, _COLOURS.get(text.strip(), ""))


def say_problem(problem: FileProblem) -> None:
    """Print a problem of a file, its gravity in colour."""
    say(one_line(problem).replace(f" {problem.gravity}: ", f" {paint_state(problem.gravity)}: ", 1))


def dim(text: str) -> str:
    return paint(text, "dim")


def bold(text: str) -> str:
    return paint(text, "bold")


def say_diff(answer: Row, none: str, *, as_json: bool) -> None:
    """A difference: coloured on a terminal, or the sentence `none`; elsewhere exact, so that git can apply it."""
    if as_json or on_terminal(sys.stdout):
        say_answer(answer, paint_diff(answer["diff"]) or none, as_json=as_json)
    elif sys.stdout:
        sys.stdout.buffer.write(answer["diff"].encode("utf-8", "surrogateescape"))


def paint_diff(diff: str) -> str:
    """A difference, coloured and harmless: what is one line for git is one here, whatever is in it."""
    return "\n".join(map(_diff_line, diff.replace("\r\n", "\n").removesuffix("\n").split("\n")))


def _diff_line(line: str) -> str:
    is_head = line.startswith(("diff ", "index ", "+++ ", "--- "))
    colour = "bold" if is_head else {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
    return paint(harmless(line), colour)


def width() -> int | None:
    """How many cells a line may have; None if the output is not a terminal."""
    if not on_terminal(sys.stdout):
        return None
    given = os.environ.get("COLUMNS", "")
    try:
        return int(given) if given.isdigit() and int(given) else os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except OSError:
        return 80


def one_line(text: object) -> str:
    """A text on one line, without characters that control a terminal."""
    return "" if text is None else harmless(" ".join(str(text).split()))


def block(text: str, indent: str = "") -> str:
    """A text line by line, without characters that control a terminal."""
    return "\n".join(indent + harmless(line) for line in text.splitlines())


def cells(text: str) -> int:
    """How wide a text is on a terminal."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width  # noqa: PLC0415

    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text if not combining(letter))


def shorten(text: str, room: int) -> str:
    """The text, or its beginning and an ellipsis."""
    if cells(text) <= room:
        return text
    while text and cells(text) > room - 1:
        text = text[:-1]
    return f"{text.rstrip()}…" if room > 0 else ""


class Column(NamedTuple):
    """One column of a table: its title, its cells, and whether it may be narrowed or left out."""

    title: str
    cell: Callable[[Row], object]
    gives: bool = False
    spare: bool = False
    style: Callable[[str], str] = str


_Filled = tuple[Column, list[str]]


def table(columns: Sequence[Column], rows: Sequence[Row]) -> list[str]:
    """Aligned lines with a heading, none wider than the terminal."""
    filled = [(column, [one_line(column.cell(row)) for row in rows]) for column in columns]
    shown = _without_spare([column for column in filled if any(column[1])], width())
    widths = _fit(shown, width())
    styles = [column.style for column, _ in shown]
    return [
        bold(_aligned([column.title for column, _ in shown], widths, [str] * len(shown))),
        *(_aligned(row, widths, styles) for row in zip(*(texts for _, texts in shown), strict=True)),
    ]


def _without_spare(columns: list[_Filled], room: int | None) -> list[_Filled]:
    """Leave out spare columns, the last one first, until the rest fits."""
    while room is not None and sum(min(_natural(column), _READABLE) + len(_GAP) for column in columns) > room:
        spare = [column for column in columns if column[0].spare]
        if not spare:
            break
        columns = [column for column in columns if column is not spare[-1]]
    return columns


def _fit(columns: list[_Filled], room: int | None) -> list[int]:
    """The width of each column: those that give way are narrowed first, the widest before others; then all."""
    widths = [_natural(column) for column in columns]
    if room is None:
        return widths
    room -= len(_GAP) * (len(columns) - 1)
    for giving in ([i for i, (column, _) in enumerate(columns) if column.gives], list(range(len(columns)))):
        while sum(widths) > room and (wide := [i for i in giving if widths[i] > _NARROWEST]):
            widths[max(wide, key=widths.__getitem__)] -= 1
    return widths


def _natural(column: _Filled) -> int:
    return max(cells(column[0].title), *map(cells, column[1]))


def _aligned(row: Sequence[str], widths: Sequence[int], styles: Sequence[Callable[[str], str]]) -> str:
    parts = []
    for index, (text, room, style) in enumerate(zip(row, widths, styles, strict=True)):
        shown = shorten(text, room)
        padding = "" if index == len(row) - 1 else " " * (room - cells(shown))
        parts.append(style(shown) + padding)
    return _GAP.join(parts).rstrip()


def page(facts: Iterable[tuple[str, object]]) -> list[str]:
    """Labelled facts, one per line; the empty ones are left out."""
    shown = [(label, one_line(value)) for label, value in facts if value not in (None, "")]
    room = max((len(label) for label, _ in shown), default=0)
    return [
        (dim(label.ljust(room)) if first else " " * room) + _GAP + line
        for label, value in shown
        for first, line in zip((True, *[False] * len(value)), _wrapped(value, room + len(_GAP)), strict=False)
    ]


def paragraph(text: str) -> str:
    """A sentence or two, broken between words."""
    return "\n".join(_wrapped(one_line(text), 0))


def _wrapped(text: str, indent: int) -> list[str]:
    """Break a text into lines that fit beside an indent; a longer word stays whole, so that it can be copied."""
    edge = width()
    lines = [""]
    for word in text.split(" "):
        if edge is not None and lines[-1] and indent + cells(lines[-1]) + 1 + cells(word) > edge:
            lines.append(word)
        else:
            lines[-1] += f" {word}" if lines[-1] else word
    return lines


def count(number: int, noun: str) -> str:
    """A number and its noun: `1 run`, `3 runs`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def listed(names: Sequence[str], total: int, since: int = 0) -> str:
    """A part of a long list on one line: how many there are, these names after the first `since`, how many more."""
    if not names:
        return str(total)
    left = total - since - len(names)
    place = f"{total}, from {since + 1} on" if since else f"{total}"
    return f"{place}: {', '.join(names)}" + (f" and {left} more" if left > 0 else "")


def ago(timestamp: float, until: float | None = None) -> str:
    """How long ago a time was, or how long before another one."""
    return age(max(0.0, (until or time.time()) - timestamp))


def as_of(answer: Row) -> str:
    """How old an answer's facts are."""
    seconds = max(0.0, time.time() - answer.get("as_of", time.time()))
    return dim(f"as of {seconds:.1f} s ago" if seconds < 10 else f"as of {age(seconds)} ago")


def waiting_note(what: str) -> Callable[[float], None]:
    """A function that shows on a terminal how long something takes; 0 seconds means that it is over."""
    shown = False

    def note(seconds: float) -> None:
        nonlocal shown
        if seconds >= 1.0 and can_redraw(sys.stderr):
            redraw(sys.stderr, f"{what} {seconds:.0f} s")
            shown = True
        elif shown and not seconds:
            redraw(sys.stderr, "")
            shown = False

    return note
