"""The demo's output: a live table on a terminal, else a line per step; and the result."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from windlass.cli.demo.place import DemoPlace
from windlass.cli.demo.story import STORIES, Storyline
from windlass.cli.output import (
    Column,
    Row,
    bold,
    can_redraw,
    dim,
    one_line,
    paint,
    paint_state,
    paragraph,
    say,
    shorten,
    table,
    width,
)
from windlass.core.display import short

_FRAME_SECONDS = 0.1
_HEIGHT = len(STORIES) + 6
"""Lines that the live table may take."""

_ABOUT = (
    "Five agents work on one small Python package at the same time, each in a clone of its own.",
    "None of them can move main. Only the gate can: it merges a change onto main, tests exactly that tree, and then "
    "lands it, or sends it back to its author with the output.",
)


def _painted(text: str) -> str:
    """The first word, a state, in its colour."""
    state, space, words = text.partition(" ")
    return paint_state(state) + space + words


_PARTS = (
    Column("AGENT", lambda row: row["part"].agent, style=bold),
    Column("TASK", lambda row: row["part"].story.title, gives=True),
    Column("TIME", lambda row: f"{row['part'].seconds:.1f} s"),
    Column("NOW", lambda row: row["part"].doing, gives=True, style=_painted),
)

_RECEIPTS = (
    Column("CHANGE", lambda row: row["change"], style=bold),
    Column("LANDED", lambda row: row["title"], gives=True),
    Column("BY", lambda row: row["agent"], spare=True),
    Column("MAIN", lambda row: short(row["after"]), spare=True),
    Column("TESTED TREE", lambda row: short(row["tested_tree"]), spare=True),
    Column("UNDO", lambda row: row["undo"]),
)


class StepLines:
    """Prints one line per step, with the seconds since the start."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.storyline: Storyline | None = None

    def begin(self, check: str) -> None:
        for text in (*_ABOUT, f"The test: {check}"):
            say(paragraph(text))
        say()

    def watch(self, storyline: Storyline) -> None:
        """Show the steps of this storyline from now on."""
        self.storyline = storyline

    def tell(self, who: str, words: str) -> None:
        parts = self.storyline.parts.values() if self.storyline else ()
        room = max((len(part.agent) for part in parts), default=0)
        say(f"{time.monotonic() - self.began:4.1f} s  {one_line(who).ljust(room)}  {one_line(words)}")

    def end(self) -> None:
        """Stop showing steps."""


class NoSteps(StepLines):
    """Shows no steps: programs only want the result."""

    def begin(self, check: str) -> None:
        del check

    def tell(self, who: str, words: str) -> None:
        del who, words


class LiveTable(StepLines):
    """Draws a table over itself, ten times a second."""

    def __init__(self) -> None:
        super().__init__()
        self._drawn = 0
        self._drawing = threading.Lock()
        self._over = threading.Event()
        self._clock = threading.Thread(target=self._tick, daemon=True)

    def watch(self, storyline: Storyline) -> None:
        super().watch(storyline)
        sys.stdout.write("\x1b[?25l")
        self._clock.start()

    def tell(self, who: str, words: str) -> None:
        del who, words
        self._draw()

    def end(self) -> None:
        """Draw the table for the last time."""
        self._over.set()
        if self._clock.ident is not None:
            self._clock.join()
        if self.storyline:
            self._draw()
            self.storyline = None
            sys.stdout.write("\x1b[?25h")
            sys.stdout.flush()

    def _tick(self) -> None:
        with suppress(OSError):  # the terminal is closed: the main thread will notice as well
            while not self._over.wait(_FRAME_SECONDS):
                self._draw()

    def _draw(self) -> None:
        with self._drawing:
            lines = _rows(self.storyline) if self.storyline else []
            up = f"\x1b[{self._drawn}F" if self._drawn else ""
            sys.stdout.write(up + "".join(f"{line}\x1b[K\n" for line in lines) + "\x1b[J")
            sys.stdout.flush()
            self._drawn = len(lines)


def chosen_view(*, as_json: bool) -> StepLines:
    """The view that suits the output."""
    if as_json:
        return NoSteps()
    if can_redraw(sys.stdout) and shutil.get_terminal_size().lines > _HEIGHT:
        return LiveTable()
    return StepLines()


def _rows(storyline: Storyline) -> list[str]:
    """The table, with the gate's refusals under the row of each author."""
    heading, *rows = table(_PARTS, [{"part": part} for part in storyline.parts.values()])
    lines, room = [heading], (width() or 80) - 2
    for row, part in zip(rows, storyline.parts.values(), strict=True):
        refusals = [shorten(one_line(f"sent back: {reason}"), room) for reason in part.told]
        lines += [row, *(f"  {paint(refusal, 'yellow')}" for refusal in refusals)]
    return lines


def say_result(receipts: Sequence[Row], storyline: Storyline, seconds: float) -> None:
    """Show the receipts, and how often main moved."""
    say()
    say("\n".join(table(_RECEIPTS, receipts)))
    say()
    returned = sum(len(part.told) for part in storyline.parts.values())
    moves = len({receipt["moved_to"] for receipt in receipts})
    proof = (
        f"Main moved {moves} times in {seconds:.1f} s and was never red: git confirms that every commit it was at has "
        f"exactly the tree that the tests passed on. {returned} changes were sent back with the output, and repaired "
        "by their own authors."
    )
    say(paragraph(proof))
    say(bold(paragraph("The agents are the hands; the gate is the pawl: what main has gained, it does not lose.")))


def say_kept(place: DemoPlace, receipts: Sequence[Row]) -> None:
    """Show how to go on in the kept folder, and how to remove it."""
    path, latest = Path(sys.argv[0]).absolute(), receipts[-1]["change"] if receipts else ""
    program = "windlass" if shutil.which("windlass") or not os.access(path, os.X_OK) else shlex.quote(str(path))
    say()
    say(f"Kept in {place.folder}. To go on:")
    say(f"  cd {shlex.quote(str(place.repo))}")
    say(f"  export WINDLASS_HOME={shlex.quote(str(place.home))}")
    if latest:
        say(f"  {program} receipt {latest}")
        say(f"  {program} undo {latest} --wait")
    say("To remove it:")
    say(f"  {program} daemon stop; cd; rm -rf {shlex.quote(str(place.folder))}")


def say_next() -> None:
    """Show what to do next."""
    say()
    for text in (
        "Nothing is left of this. To keep it, and try the commands above: windlass demo --keep",
        "In a repository of your own: windlass init",
    ):
        say(dim(paragraph(text)))
