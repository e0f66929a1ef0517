"""Watch: the journal as it is written, without a gap, across restarts of the daemon."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, TypeVar

import click

from windlass.cli.arguments import command
from windlass.cli.connection.client import Client, NotRunning, inside_a_run, repository
from windlass.cli.connection.http import Gone, watch_outlet
from windlass.cli.output import say_json_line, tell

T = TypeVar("T")

RETRY_SECONDS = 0.2


_DERIVED = ("status.changed", "files.changed")
"""What is in no journal, and follows from it."""
_STEPS = {
    "agent": "added numbered prepared renewed retired",
    "change": "closed delayed held landed queued ranked rejected staged tested",
    "chat": "read",
    "daemon": "troubled",
    "document": "written",
    "instance": "advanced draining ended entered landed started submitted",
    "message": "acked dropped held sent",
    "page": "synced",
    "project": "added changed paused resumed tested",
    "run": "asked checked crashed delayed finished halted learned output signalled started starting stopping",
    "task": "added cancelled done failed paused submitted",
}
KINDS = (*_DERIVED, *(f"{noun}.{step}" for noun, steps in _STEPS.items() for step in steps.split()))
"""What may happen, as far as it is told apart by name."""


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
@click.option("--all", "everywhere", is_flag=True, help="What happens in every project, not only in this one.")
@click.option("--json", is_flag=True, expose_value=False, help="It prints JSON in any case.")
@click.pass_obj
def watch_command(daemon: Client, since: int | None, kinds: tuple[str, ...], everywhere: bool) -> None:
    """Print everything that happens in this project, one JSON object per line, for as long as you like.

    Outside every project, it is what happens in all of them. What is nobody's own, such as the daemon's troubles, is
    printed in any case.

    \b
    Each line has time, kind and subject; a step of the journal also seq, and became: the rows as they are now.
    message.sent     has message: {id, from, to, message, channel, kind, reply_to}
    status.changed   has status, was, evidence, task and project; in the beginning, one for each agent
    files.changed    has added, edited and removed: all that an agent has changed since it left main
    change.landed    has in became which files main has got
    """
    wanted = partial(_is_wanted, kinds)
    for kind in kinds:
        _check_kind(kind)
    path = None if everywhere or inside_a_run() else repository()
    for event in _once(events(daemon, since, feed=any(map(wanted, _DERIVED)), path=path)):
        if wanted(event["kind"]):
            say_json_line(_with_message(event))


def _check_kind(pattern: str) -> None:
    """Say so where nothing of that kind is known; it is waited for all the same."""
    if any(fnmatchcase(kind, pattern) for kind in KINDS):
        return
    from windlass.core.did_you_mean import near_miss  # noqa: PLC0415

    tell(f"windlass: no event of kind {pattern!r} is known. {near_miss(pattern, KINDS)}".rstrip())


def _is_wanted(kinds: tuple[str, ...], kind: str) -> bool:
    return not kinds or any(fnmatchcase(kind, each) for each in kinds)


def _once(lines: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The next daemon tells everyone's status and files again: nobody wants to read twice what is as it was."""
    known: dict[tuple[str, str], Any] = {}
    for line in lines:
        if line["kind"] in _DERIVED:
            key = (line["kind"], line["subject"])
            facts = {name: value for name, value in line.items() if name not in ("time", "was", "evidence")}
            if known.get(key) == facts:
                continue
            known[key] = facts
        yield line


def _with_message(event: dict[str, Any]) -> dict[str, Any]:
    """What was said, with the keys that it has everywhere else."""
    said = [each for each in event.get("became") or () if each.get("noun") == "message"]
    if event["kind"] != "message.sent" or not said:
        return event
    row = said[0]
    message = {"id": row["id"], "from": row["sender"], "to": row["to"], "message": row["body"]}
    message |= {"channel": row["channel"], "kind": row["kind"], "reply_to": row["reply_to"] or None}
    return {**event, "message": message}


def events(
    daemon: Client, last: int | None = None, *, feed: bool = False, path: str | None = None
) -> Iterator[dict[str, Any]]:
    """Each event once, in order, from now on or after one. We listen already when this returns."""
    which: dict[str, Any] = {"feed": 1 if feed else None, "path": path}
    return _events(daemon, daemon.lines("events", since=last, **which), last, which)


def _events(
    daemon: Client, lines: Iterator[bytes], last: int | None, which: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """When the daemon goes, wait for the next one and go on where we were."""
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
    """Ask the next daemon, once there is one. `ask` may start one that was killed, not one that someone stopped."""
    said = False
    while True:
        try:
            return ask()
        except (NotRunning, Gone):
            if not said:
                tell("windlass: the daemon has gone; waiting for the next one.")
            said = True
            watch_outlet(RETRY_SECONDS)


def _parsed(lines: Iterator[bytes]) -> Iterator[tuple[int | None, dict[str, Any] | None]]:
    """Server-sent events: a number, unless it is in no journal; an event, unless it says where the journal stands."""
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
