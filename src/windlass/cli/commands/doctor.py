"""Doctor: what is wrong, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from windlass.cli.arguments import command, json_option
from windlass.cli.connection.client import Client, Waiting, here
from windlass.cli.output import Row, as_of, cells, dim, one_line, paint, say, say_json, waiting_note
from windlass.core.errors import Unavailable, WindlassError

_LONGEST_PROMISE = len("I3 landed differences")


@command(
    "doctor",
    """
    windlass doctor
    windlass doctor --json
    windlass doctor --check      holds every promise against the store, the repositories and the processes
    """,
)
@click.option("--check", is_flag=True, help="Look at every promise instead: what landed, was said, saved and runs.")
@json_option
@click.pass_context
def doctor_command(ctx: click.Context, check: bool, as_json: bool) -> None:
    """Look at everything Windlass needs, and say what is wrong. Exit 0 only if nothing is."""
    if check:
        ctx.exit(_checked(ctx.obj, as_json=as_json))
    answer = _examined(ctx.obj)
    items = answer["items"]
    if as_json:
        say_json(items)
    else:
        room = max((cells(one_line(item["name"])) for item in items), default=0)
        say("\n".join(line for item in items for line in _lines(item, room)))
        say(as_of(answer))
    ctx.exit(0 if all(item["ok"] for item in items) else 1)


def _checked(daemon: Client, *, as_json: bool) -> int:
    """Say each finding when it comes; the exit code."""
    items = []
    note = waiting_note("Looking,")
    for item in _promises(daemon, note):
        items.append(item)
        note(0.0)
        if not as_json:
            say("\n".join(_lines(item, _LONGEST_PROMISE)))
    if as_json:
        say_json(items)
    return 0 if all(each["ok"] for each in items) else 1


def _promises(daemon: Client, note: Waiting) -> Iterator[Row]:
    """What the daemon finds, one by one; if it is not there, or goes, that is a finding."""
    try:
        yield from daemon.stream("doctor", "check", waiting=note)
    except Unavailable as error:
        yield _no_daemon(error)


def _examined(daemon: Client) -> Any:
    """What the daemon finds; if there can't be one, that is the finding."""
    try:
        return daemon.get("doctor", path=here())
    except WindlassError as error:
        return {"items": [_no_daemon(error)]}


def _no_daemon(error: WindlassError) -> Row:
    return {"name": "daemon", "ok": False, "detail": str(error), "hint": error.hint}


def _lines(item: Row, room: int) -> list[str]:
    name = one_line(item["name"])
    mark = paint("ok ", "green") if item["ok"] else paint("bad", "red")
    lines = [f"{mark}  {name}{' ' * (room - cells(name))}  {one_line(item['detail'])}".rstrip()]
    if item["hint"] and not item["ok"]:
        lines += [dim(f"     {' ' * room}  {one_line(line)}") for line in item["hint"].splitlines()]
    return lines
