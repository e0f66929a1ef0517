"""The queue: what wants to land, in order; and who enters, waits, goes first or leaves."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import click

from windlass.cli.arguments import change_argument, command, here_option, json_option
from windlass.cli.commands.agents import described
from windlass.cli.commands.watch import events, when_back
from windlass.cli.connection.client import Client, here
from windlass.cli.output import (
    Column,
    Row,
    as_of,
    bold,
    clear,
    one_line,
    paint_state,
    paragraph,
    say,
    say_json,
    say_json_line,
    table,
)
from windlass.core.display import age

_EXAMPLES = """\b
Examples:
  windlass queue
  windlass queue --all               what has landed, too
  windlass queue --watch             shown anew at every step
  windlass queue add my-branch       your own branch, through the same gate
  windlass queue hold c3 --reason "after the release"
  windlass queue first c4            before all others
  windlass queue pause               nothing lands until `windlass queue resume`"""

_QUEUE = (
    Column("CHANGE", lambda row: row["id"], style=bold),
    Column("STATE", lambda row: row["state"], style=paint_state),
    Column("AGENT", lambda row: row["agent"], spare=True),
    Column("AGE", lambda row: age(row["age_seconds"]) if "age_seconds" in row else "", spare=True),
    Column("TITLE", lambda row: row.get("title") or row["branch"], gives=True),
    Column("REASON", lambda row: row["reason"], gives=True),
)

_MOVES = ("change.", "project.")
"""Kinds of events after which the queue may look different."""

reason_option = click.option("--reason", metavar="TEXT", help="Why, in a few words; everyone who looks sees it.")


@click.group("queue", epilog=_EXAMPLES, invoke_without_command=True)
@click.option("--all", "everything", is_flag=True, help="What has landed or was closed, too.")
@click.option("--watch", is_flag=True, help="Show it anew whenever something happens to it; with --json a line each.")
@here_option
@json_option
@click.pass_context
def queue_command(ctx: click.Context, everything: bool, watch: bool, path: str | None, as_json: bool) -> None:
    """Show what wants to land, in order, and what each waits for. Its commands arrange it; only people may."""
    if ctx.invoked_subcommand is not None:
        if everything or watch or path or as_json:
            raise click.UsageError(f"Options of `queue {ctx.invoked_subcommand}` go after its name.", ctx)
        return
    if watch:
        _watch(ctx.obj, _show_line if as_json else _show_anew, all=int(everything), path=path)
        return
    answer = ctx.obj.get("queue", all=int(everything), path=path)
    if as_json:
        say_json(answer["items"])
    else:
        _show(answer)


def _watch(daemon: Client, show: Callable[[Row], None], **query: Any) -> None:
    """Listening begins before looking, so that no step is missed."""
    happened = events(daemon)
    show(daemon.get("queue", **query))
    for event in happened:
        if event["kind"].startswith(_MOVES):
            show(when_back(partial(daemon.going_on().get, "queue", **query)))


def _show_line(answer: Row) -> None:
    say_json_line(answer["items"])


def _show_anew(answer: Row) -> None:
    clear()
    _show(answer)


def _show(answer: Row) -> None:
    if answer["items"]:
        say("\n".join(table(_QUEUE, answer["items"])))
    for each in answer.get("paused", ()):
        say(paragraph(_paused(each)))
    for each in answer.get("red", ()):
        say(paragraph(f"{each['reason']}. Only what mends it goes on; the others wait."))
    say(paragraph(_what_is_next(answer["items"])))
    say(as_of(answer))


def _paused(pause: Row) -> str:
    why = f" ({pause['reason']})" if pause["reason"] else ""
    return f"The queue of {pause['project']} is paused{why}: nothing lands. Go on: windlass queue resume"


def _what_is_next(items: list[Row]) -> str:
    moving = [item for item in items if not item.get("paused")]
    testing = [each["id"] for each in moving if each["state"] == "testing"]
    queued = [each["id"] for each in moving if each["state"] == "queued"]
    held = [item["id"] for item in items if item["state"] == "held"]
    if testing:
        words = f"Next: {', '.join(testing)}, being tested" + (f"; then {', '.join(queued)}" if queued else "") + "."
    elif queued:
        words = f"Next: {queued[0]}."
    else:
        paused = any(item.get("paused") and item["state"] == "queued" for item in items)
        words = "Nothing lands now." if paused else "Nothing waits to land."
    return words + (f" Held until someone acts: {', '.join(held)}." if held else "")


# ── arranging it ─────────────────────────────────────────────────────────────────────────────────────────────


@command(
    "add",
    """
    windlass queue add my-branch
    windlass queue add my-branch --title "Speed up the parser"
    """,
    group=queue_command,
)
@click.argument("branch")
@click.option("--title", metavar="TEXT", help="What it does. Default: the first line of its newest commit.")
@json_option
@click.pass_obj
def add_command(daemon: Client, branch: str, title: str | None, as_json: bool) -> None:
    """Put a branch of your own into the queue. It lands like an agent's work: when the checks pass on the result.

    What the branch holds now is taken. After more commits, add it again: they take the place of what waits."""
    made = daemon.post("queue", path=here(), branch=branch, title=title)
    if as_json:
        say_json(made)
    else:
        say(f"{bold(made['id'])} wants to land {one_line(made['branch'])}: {one_line(made['title'])}")
        say("  windlass queue --watch    see it land")


@command("drop", 'windlass queue drop c3\nwindlass queue drop c3 --reason "c5 does it better"', group=queue_command)
@change_argument
@reason_option
@json_option
@click.pass_obj
def drop_command(daemon: Client, change: str, reason: str | None, as_json: bool) -> None:
    """Give a change up. Its branch stays; an agent's task is given up with it."""
    _said(daemon.post("changes", change, "drop", reason=reason), as_json)


@command("hold", 'windlass queue hold c3\nwindlass queue hold c3 --reason "after the release"', group=queue_command)
@change_argument
@reason_option
@json_option
@click.pass_obj
def hold_command(daemon: Client, change: str, reason: str | None, as_json: bool) -> None:
    """Let a change wait, also one that is being tested, until you release it."""
    _said(daemon.post("changes", change, "hold", reason=reason), as_json, f"windlass queue release {change}")


@command("release", "windlass queue release c3", group=queue_command)
@change_argument
@json_option
@click.pass_obj
def release_command(daemon: Client, change: str, as_json: bool) -> None:
    """Let a held change go on. What the gate itself finds in the way holds it again."""
    _said(daemon.post("changes", change, "release"), as_json)


@command("retry", "windlass queue retry c3", group=queue_command)
@change_argument
@json_option
@click.pass_obj
def retry_command(daemon: Client, change: str, as_json: bool) -> None:
    """Test a refused or held change again, as it is: nothing that was found before counts."""
    _said(daemon.post("changes", change, "retry"), as_json)


@command("first", "windlass queue first c3", group=queue_command)
@change_argument
@json_option
@click.pass_obj
def first_command(daemon: Client, change: str, as_json: bool) -> None:
    """Let a change go before all others of its project; what is being tested now is tested to its end."""
    _said(daemon.post("changes", change, "first"), as_json)


@command("pause", 'windlass queue pause\nwindlass queue pause --reason "release day"', group=queue_command)
@reason_option
@json_option
@click.pass_obj
def pause_command(daemon: Client, reason: str | None, as_json: bool) -> None:
    """Let nothing land in the project of this folder. When this returns, main does not move any more."""
    answer = daemon.post("queue", "pause", path=here(), reason=reason)
    if as_json:
        say_json(answer)
    else:
        say(paragraph(_paused(answer)))


@command("resume", "windlass queue resume", group=queue_command)
@json_option
@click.pass_obj
def resume_command(daemon: Client, as_json: bool) -> None:
    """Let changes land again in the project of this folder."""
    answer = daemon.post("queue", "resume", path=here())
    if as_json:
        say_json(answer)
    else:
        say(f"The queue of {one_line(answer['project'])} goes on.")


def _said(change: Row, as_json: bool, then: str = "") -> None:
    if as_json:
        say_json(change)
        return
    say(one_line(described(change)))
    if then:
        say(f"  {then}    let it go on")
