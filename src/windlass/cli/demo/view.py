"""How the demo is shown: a table that moves on a terminal, else a line per step; and what it all came to."""

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
from windlass.cli.demo.story import STORIES, Part, Storyline
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
"""Lines that the moving table may take."""

_ABOUT = (
    "Five agents work on one small Python package at the same time, each in a clone of its own.",
    "None of them can move main. Only the gate can: it merges a change onto main, tests exactly that tree, and then "
    "lands it, or sends it back to its author with the output.",
)


def _painted(text: str) -> str:
    """The state in its colour; what follows it is said in plain words."""
    state, space, words = text.partition(" ")
    return paint_state(state) + space + words


_PARTS = (
    Column("AGENT", lambda row: row["agent"], style=bold),
    Column("TASK", lambda row: row["title"], gives=True),
    Column("TIME", lambda row: row["time"]),
    Column("NOW", lambda row: row["doing"], gives=True, style=_painted),
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
    """One line per step, with the seconds since the beginning."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.board: Storyline | None = None

    def begin(self, check: str) -> None:
        for each in (*_ABOUT, f"The test: {check}"):
            say(paragraph(each))
        say()

    def watch(self, board: Storyline) -> None:
        """The board that is told about from now on."""
        self.board = board

    def tell(self, who: str, words: str) -> None:
        room = max((len(part.agent) for part in self.board.parts.values()), default=0) if self.board else 0
        say(f"{time.monotonic() - self.began:4.1f} s  {one_line(who).ljust(room)}  {one_line(words)}")

    def end(self) -> None:
        """Nothing moves any more."""


class Silence(StepLines):
    """For programs: only the end is said, and not here."""

    def begin(self, check: str) -> None:
        del check

    def tell(self, who: str, words: str) -> None:
        del who, words


class Live(StepLines):
    """A table that is drawn over itself, ten times a second."""

    def __init__(self) -> None:
        super().__init__()
        self._drawn = 0
        self._drawing = threading.Lock()
        self._over = threading.Event()
        self._clock = threading.Thread(target=self._tick, daemon=True)

    def watch(self, board: Storyline) -> None:
        super().watch(board)
        sys.stdout.write("\x1b[?25l")
        self._clock.start()

    def tell(self, who: str, words: str) -> None:
        del who, words
        self._draw()

    def end(self) -> None:
        """The last picture stays."""
        self._over.set()
        if self._clock.ident is not None:
            self._clock.join()
        if self.board:
            self._draw()
            self.board = None
            sys.stdout.write("\x1b[?25h")
            sys.stdout.flush()

    def _tick(self) -> None:
        with suppress(OSError):  # the terminal has gone, which the main thread will notice as well
            while not self._over.wait(_FRAME_SECONDS):
                self._draw()

    def _draw(self) -> None:
        with self._drawing:
            lines = _picture(self.board) if self.board else []
            up = f"\x1b[{self._drawn}F" if self._drawn else ""
            sys.stdout.write(up + "".join(f"{line}\x1b[K\n" for line in lines) + "\x1b[J")
            sys.stdout.flush()
            self._drawn = len(lines)


def chosen_view(*, as_json: bool) -> StepLines:
    """What fits where the output goes."""
    if as_json:
        return Silence()
    if can_redraw(sys.stdout) and shutil.get_terminal_size().lines > _HEIGHT:
        return Live()
    return StepLines()


def _picture(board: Storyline) -> list[str]:
    parts = list(board.parts.values())
    heading, *rows = table(_PARTS, [_row(each) for each in parts])
    lines = [line for row, part in zip(rows, parts, strict=True) for line in (row, *_refusals(part))]
    return [heading, *lines]


def _row(part: Part) -> Row:
    return {"agent": part.agent, "title": part.story.title, "time": f"{part.seconds:.1f} s", "doing": part.doing}


def _refusals(part: Part) -> list[str]:
    """What the gate said, under the row of the one who was told."""
    room = (width() or 80) - 2
    return [f"  {paint(shorten(one_line(f'sent back: {each}'), room), 'yellow')}" for each in part.told]


def say_result(receipts: Sequence[Row], board: Storyline, seconds: float) -> None:
    """The receipts, and what was shown."""
    say()
    say("\n".join(table(_RECEIPTS, receipts)))
    say()
    returned = sum(len(part.told) for part in board.parts.values())
    moves = len({receipt["moved_to"] for receipt in receipts})
    say(
        paragraph(
            f"Main moved {moves} times in {seconds:.1f} s and was never red: git confirms that every commit it "
            f"was at has exactly the tree that the tests passed on. {returned} changes were sent back with the output, "
            "and mended by their own authors."
        )
    )
    say(bold(paragraph("The agents are the hands; the gate is the pawl: what main has gained, it does not lose.")))


def say_kept(place: DemoPlace, receipts: Sequence[Row]) -> None:
    """How to go on in a place that was kept, and how to get rid of it."""
    program, latest = _program(), receipts[-1]["change"] if receipts else ""
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
    """What a stranger can do now."""
    say()
    for each in (
        "Nothing is left of this. To keep it, and try the commands above: windlass demo --keep",
        "In a repository of your own: windlass init",
    ):
        say(dim(paragraph(each)))


def _program() -> str:
    """What must be typed to get this program again."""
    here = Path(sys.argv[0]).absolute()
    return "windlass" if shutil.which("windlass") or not os.access(here, os.X_OK) else shlex.quote(str(here))
