"""Watch: the journal as it is written, without a gap, across restarts of the daemon."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, TypeVar

import click

from windlass.cli.client import Client, NotRunning
from windlass.cli.command import command
from windlass.cli.output import say_json_line, tell
from windlass.cli.wire import Gone, watch_outlet

T = TypeVar("T")

_RETRY_SECONDS = 0.2


@command(
    "watch",
    """
    windlass watch
    windlass watch --since 0 --kind 'change.*'     every step of every change, from the beginning
    windlass watch --kind change.landed | head -1  wait for the next landing
    """,
)
@click.option("--since", type=click.IntRange(min=0), metavar="N", help="Begin after event N. Default: now.")
@click.option("--kind", "kinds", multiple=True, metavar="GLOB", help="Only these kinds, such as 'run.*'.")
@click.pass_obj
def watch_command(daemon: Client, since: int | None, kinds: tuple[str, ...]) -> None:
    """Print everything that happens, one JSON object per line, for as long as you like."""
    for event in events(daemon, since):
        if not kinds or any(fnmatchcase(event["kind"], each) for each in kinds):
            say_json_line(event)


def events(daemon: Client, last: int | None = None) -> Iterator[dict[str, Any]]:
    """Each event once, in order, from now on or after one. We listen already when this returns."""
    return _events(daemon, daemon.lines("events", since=last), last)


def _events(daemon: Client, lines: Iterator[bytes], last: int | None) -> Iterator[dict[str, Any]]:
    """When the daemon goes, wait for the next one and go on where we were."""
    while True:
        try:
            for number, event in _parsed(lines):
                if event and (last is None or number > last):
                    yield event
                last = max(number, last or 0)
        except Gone:
            pass
        lines = when_back(partial(daemon.only_if_running().lines, "events", since=last))


def when_back(ask: Callable[[], T]) -> T:
    """Ask the next daemon, once there is one; it is not ours to start one that someone stopped."""
    said = False
    while True:
        try:
            return ask()
        except (NotRunning, Gone):
            if not said:
                tell("windlass: the daemon has gone; waiting for the next one.")
            said = True
            watch_outlet(_RETRY_SECONDS)


def _parsed(lines: Iterator[bytes]) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Server-sent events: a number, and an event unless it only says where the journal stands."""
    number, data = 0, b""
    for line in lines:
        field, _, value = line.rstrip(b"\r").partition(b": ")
        if field == b"id":
            number = int(value)
        elif field == b"data":
            data += value
        elif not line.strip() and number:
            yield number, json.loads(data) if data else None
            number, data = 0, b""
