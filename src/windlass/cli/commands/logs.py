"""Logs: show the output of an agent, and follow it."""

from __future__ import annotations

import sys
import time
from binascii import a2b_base64
from codecs import getincrementaldecoder
from collections.abc import Iterator
from functools import partial
from io import IncrementalNewlineDecoder
from typing import Any

import click

from windlass.cli.arguments import Duration, agent_argument, command, daemon_and_json
from windlass.cli.commands.watch import when_back
from windlass.cli.connection.client import Client
from windlass.cli.connection.http import Gone
from windlass.cli.output import Row, dim, on_terminal, say_json_line
from windlass.core.display import harmless


@command(
    "logs",
    """
    windlass logs swift-otter
    windlass logs swift-otter -f          go on until it has finished
    windlass logs swift-otter --run 2     its second run only
    windlass logs swift-otter --since 10m --times
    windlass logs swift-otter --raw > output.bin
    """,
)
@agent_argument
@click.option("-f", "--follow", is_flag=True, help="Go on until the agent has finished.")
@click.option("--raw", is_flag=True, help="The very bytes that it printed, escapes and all.")
@click.option("--run", "number", type=click.IntRange(min=1), metavar="N", help="Only its Nth run.")
@click.option("--since", type=Duration(), help="Only what was printed in the last 90s, 10m, 2h …")
@click.option("-t", "--times", is_flag=True, help="Say when each line was printed, as HH:MM:SS.")
@daemon_and_json
def logs_command(daemon: Client, /, *, name: str, raw: bool, times: bool, as_json: bool, **which: Any) -> None:
    """Show an agent's output. Control characters are shown as text, unless --raw."""
    if raw and as_json:
        raise click.UsageError("Choose --raw or --json; the JSON has the raw bytes in it.", click.get_current_context())
    printer = _Printer(times=times)
    show = printer.raw if raw else say_json_line if as_json else printer.text
    for chunk in _chunks(daemon, name, **which):
        show(chunk)
    if not raw and not as_json:
        printer.end()


def _chunks(daemon: Client, name: str, *, follow: bool, number: int | None, since: float | None) -> Iterator[Row]:
    """Yield each piece of output once. With `follow`, continue with the next daemon when one goes."""
    ends: dict[str, int] = {}
    pieces = daemon.stream("agents", name, "logs", follow=int(follow), run=number, newer=since)
    while True:
        try:
            for chunk in pieces:
                if chunk.get("leaving"):
                    break
                if chunk["offset"] >= ends.get(chunk["run"], 0):
                    ends[chunk["run"]] = chunk["offset"] + len(a2b_base64(chunk["raw"]))
                    yield chunk
            else:
                return
        except Gone:
            if not follow:
                raise
        pieces = when_back(partial(daemon.going_on().stream, "agents", name, "logs", follow=1, run=number, newer=since))


class _Printer:
    """Prints chunks of output, with a heading before each run."""

    def __init__(self, *, times: bool) -> None:
        self.times = times
        self.run = 0
        self.decoder = _decoder()
        self.ended = True
        """Whether the last chunk ended with a line end."""

    def raw(self, chunk: Row) -> None:
        if sys.stdout:
            sys.stdout.buffer.write(a2b_base64(chunk["raw"]))
            sys.stdout.buffer.flush()

    def text(self, chunk: Row) -> None:
        """Print bytes as text; letters and line ends that two chunks share stay whole."""
        if chunk["number"] != self.run:
            self._heading(chunk["number"])
        if chunk.get("said") is not None:  # the output is for programs; these lines are its meaning
            words = "".join(f"{line}\n" for line in chunk["said"])
        else:
            words = self.decoder.decode(a2b_base64(chunk["raw"]))
        self._write(self._timed(harmless(words), chunk["time"]))

    def end(self) -> None:
        self._write(harmless(self.decoder.decode(b"", final=True)))
        if not self.ended:
            self._write("\n")

    def _timed(self, text: str, when: float) -> str:
        """Put the time before each line that begins in this text."""
        if not self.times or not text:
            return text
        stamp = time.strftime("%H:%M:%S  ", time.localtime(when))
        lines = "".join(stamp + line for line in text.splitlines(keepends=True))
        return lines if self.ended else lines.removeprefix(stamp)

    def _heading(self, number: int) -> None:
        """Announce a run to people; a file gets only the output."""
        self.end()
        self.run, self.decoder = number, _decoder()
        if on_terminal(sys.stdout):
            self._write(dim(f"── run {number} ──") + "\n")

    def _write(self, text: str) -> None:
        if text and sys.stdout:
            sys.stdout.write(text)
            sys.stdout.flush()
            self.ended = text.endswith("\n")


def _decoder() -> IncrementalNewlineDecoder:
    return IncrementalNewlineDecoder(getincrementaldecoder("utf-8")("replace"), translate=True)
