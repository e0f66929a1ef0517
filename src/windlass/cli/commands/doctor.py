"""Doctor: show what is wrong, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator

import click

from windlass.cli.arguments import command, json_option
from windlass.cli.connection import launch
from windlass.cli.connection.client import Client, here
from windlass.cli.connection.http import Waiting
from windlass.cli.output import Row, ago, as_of, cells, count, dim, one_line, paint, say, say_json, waiting_note
from windlass.core.display import some
from windlass.core.errors import Unavailable, WindlassError

_LONGEST_PROMISE = len("I3 landed differences")


@command(
    "doctor",
    """
    windlass doctor
    windlass doctor --json
    windlass doctor --check      holds every promise against the store, the repositories and the processes
    windlass doctor --restore    puts the last copy of a store back that was deleted or damaged
    """,
)
@click.option("--check", is_flag=True, help="Look at every promise instead: what landed, was said, saved and runs.")
@click.option("--restore", is_flag=True, help="Put the hourly copy of the store back, while no daemon runs.")
@json_option
@click.pass_context
def doctor_command(ctx: click.Context, check: bool, restore: bool, as_json: bool) -> None:
    """Look at everything Windlass needs, and say what is wrong. Exit 0 only if nothing is."""
    if check and restore:
        raise click.UsageError("Choose --check or --restore.", ctx)
    if restore:
        _restore(ctx.obj, as_json=as_json)
        return
    if check:
        ctx.exit(_check_promises(ctx.obj, as_json=as_json))
    try:
        answer = ctx.obj.get("doctor", path=here())
    except WindlassError as error:
        answer = {"items": [_no_daemon(error)]}
    items = answer["items"]
    if as_json:
        say_json(items)
    else:
        room = max((cells(one_line(item["name"])) for item in items), default=0)
        say("\n".join(line for item in items for line in _lines(item, room)))
        say(as_of(answer))
    ctx.exit(0 if all(item["ok"] for item in items) else 1)


def _restore(daemon: Client, *, as_json: bool) -> None:
    """Put the copy back, and say how old it is and what it does not know."""
    restored = launch.restore(daemon.home)
    if as_json:
        say_json(restored)
        return
    say(f"The store is back as it was {ago(restored['copied_at'])} ago, with {count(restored['events'], 'event')}.")
    say("What came after that is missing in it; commits and worktrees are where they were.")
    if runs := restored["unknown_runs"]:
        say(f"It does not know {count(len(runs), 'run')} that began later: {one_line(some(runs))}.")
    for file in restored["aside"]:
        say(f"Kept aside: {one_line(file)}")


def _check_promises(daemon: Client, *, as_json: bool) -> int:
    """Show each finding as it comes, and return the exit code."""
    items = []
    note = waiting_note("Looking,")
    for item in _findings(daemon, note):
        items.append(item)
        note(0.0)
        if not as_json:
            say("\n".join(_lines(item, _LONGEST_PROMISE)))
    if as_json:
        say_json(items)
    return 0 if all(item["ok"] for item in items) else 1


def _findings(daemon: Client, note: Waiting) -> Iterator[Row]:
    """Yield the daemon's findings; a missing daemon is a finding, too."""
    try:
        yield from daemon.stream("doctor", "check", waiting=note)
    except Unavailable as error:
        yield _no_daemon(error)


def _no_daemon(error: WindlassError) -> Row:
    return {"name": "daemon", "ok": False, "detail": str(error), "hint": error.hint}


def _lines(item: Row, room: int) -> list[str]:
    name = one_line(item["name"])
    mark = paint("ok ", "green") if item["ok"] else paint("bad", "red")
    lines = [f"{mark}  {name}{' ' * (room - cells(name))}  {one_line(item['detail'])}".rstrip()]
    if item["hint"] and not item["ok"]:
        lines += [dim(f"     {' ' * room}  {one_line(line)}") for line in item["hint"].splitlines()]
    return lines
