"""Watch: print the journal as it is written, without a gap, across restarts of the daemon."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, TypeVar

import click

from windlass.cli.arguments import command
from windlass.cli.connection.client import Client, NotRunning, inside_a_run, repository
from windlass.cli.connection.http import Gone, sleep_while_read
from windlass.cli.output import say_json_line, tell

T = TypeVar("T")

RETRY_SECONDS = 0.2


_DERIVED = ("status.changed", "files.changed")
"""Events that are not in the journal: the daemon derives them."""
_STEPS = {
    "agent": "added numbered prepared renewed retired",
    "change": "closed delayed held landed queued ranked rejected staged tested",
    "chat": "read",
    "daemon": "troubled",
    "document": "written",
    "instance": "advanced draining ended entered landed started submitted",
    "message": "acked dropped held sent",
    "page": "synced",
    "project": "added back changed forgotten gone paused resumed tested",
    "run": "asked checked crashed delayed finished halted learned output signalled started starting stopping",
    "task": "added cancelled done failed paused submitted",
}
KINDS = (*_DERIVED, *(f"{noun}.{step}" for noun, steps in _STEPS.items() for step in steps.split()))
"""Every known kind of event."""


@command(
    "watch",
    """
    windlass watch                                 all that happens in this project
    windlass watch --all                           and in all others
    windlass watch --kind message.sent | jq -r '.message | "\\(.from): \\(.message)"'
    windlass watch --kind status.changed --kind files.changed    who does what, and to which files
    windlass watch --since 0 --kind 'change.*'     every step of every change, from the beginning
    windlass watch --kind change.landed | head -1  wait for the next landing
    """,
)
@click.option("--since", type=click.IntRange(min=0), metavar="N", help="Begin after event N. Default: now.")
@click.option("--kind", "kinds", multiple=True, metavar="GLOB", help="Only these kinds, such as 'run.*'.")
@click.option("--all", "everywhere", is_flag=True, help="Events of every project, not only of this one.")
@click.option("--json", is_flag=True, expose_value=False, help="It prints JSON in any case.")
@click.pass_obj
def watch_command(daemon: Client, since: int | None, kinds: tuple[str, ...], everywhere: bool) -> None:
    """Print everything that happens in this project, one JSON object per line, for as long as you like.

    Outside every project, it prints the events of all projects. Events that belong to no project, such as the daemon's
    troubles, are printed in any case.

    \b
    Each line has time, kind and subject; a step of the journal also seq, and became: the rows as they are now.
    message.sent     has message: {id, from, to, message, channel, kind, reply_to}
    status.changed   has status, was, evidence, task and project; in the beginning, one for each agent
    files.changed    has added, edited and removed: all that an agent has changed since it left main
    change.landed    has in became which files main has got
    """

    def is_wanted(kind: str) -> bool:
        return not kinds or any(fnmatchcase(kind, pattern) for pattern in kinds)

    for pattern in kinds:
        _check_pattern(pattern)
    path = None if everywhere or inside_a_run() else repository()
    for event in _without_repeats(events(daemon, since, feed=any(map(is_wanted, _DERIVED)), path=path)):
        if is_wanted(event["kind"]):
            say_json_line(_with_message(event))


def _check_pattern(pattern: str) -> None:
    """Warn about a pattern that no known kind matches; it is watched all the same."""
    if any(fnmatchcase(kind, pattern) for kind in KINDS):
        return
    from windlass.core.did_you_mean import near_miss  # noqa: PLC0415

    tell(f"windlass: no event of kind {pattern!r} is known. {near_miss(pattern, KINDS)}".rstrip())


def _without_repeats(found: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Drop statuses and files that a restarted daemon tells again, unchanged."""
    known: dict[tuple[str, str], Any] = {}
    for event in found:
        if event["kind"] in _DERIVED:
            key = (event["kind"], event["subject"])
            facts = {name: value for name, value in event.items() if name not in ("time", "was", "evidence")}
            if known.get(key) == facts:
                continue
            known[key] = facts
        yield event


def _with_message(event: dict[str, Any]) -> dict[str, Any]:
    """The event; if a message was sent, with the message in the form that all commands print."""
    row = next((row for row in event.get("became") or () if row.get("noun") == "message"), None)
    if event["kind"] != "message.sent" or row is None:
        return event
    message = {"id": row["id"], "from": row["sender"], "to": row["to"], "message": row["body"]}
    message |= {"channel": row["channel"], "kind": row["kind"], "reply_to": row["reply_to"] or None}
    return {**event, "message": message}


def events(
    daemon: Client, last: int | None = None, *, feed: bool = False, path: str | None = None
) -> Iterator[dict[str, Any]]:
    """Yield each event once, in order, from now on or after event `last`. Listening has begun when this returns."""
    which: dict[str, Any] = {"feed": 1 if feed else None, "path": path}
    return _events(daemon, daemon.lines("events", since=last, **which), last, which)


def _events(
    daemon: Client, lines: Iterator[bytes], last: int | None, which: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """When the daemon goes, wait for the next one and continue after the last event."""
    while True:
        try:
            for number, event in _parsed(lines):
                if event and (number is None or last is None or number > last):
                    yield event
                last = last if number is None else max(number, last or 0)
        except Gone:
            pass
        lines = when_back(partial(daemon.going_on().lines, "events", since=last, **which))


def when_back(ask: Callable[[], T]) -> T:
    """Ask until a daemon answers. `ask` may restart a daemon that was killed, not one that someone stopped."""
    said = False
    while True:
        try:
            return ask()
        except (NotRunning, Gone):
            if not said:
                tell("windlass: the daemon has gone; waiting for the next one.")
            said = True
            sleep_while_read(RETRY_SECONDS)


def _parsed(lines: Iterator[bytes]) -> Iterator[tuple[int | None, dict[str, Any] | None]]:
    """Parse server-sent events: a number for those in the journal, and an event unless only the number is sent."""
    number: int | None = None
    data = b""
    for line in lines:
        field, _, value = line.rstrip(b"\r").partition(b": ")
        if field == b"id":
            number = int(value)
        elif field == b"data":
            data += value
        elif not line.strip() and (number is not None or data):
            yield number, json.loads(data) if data else None
            number, data = None, b""
