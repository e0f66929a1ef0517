"""The queue: show the changes that want to land, in order, and arrange them."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from windlass.cli.arguments import all_of, change_argument, command, daemon_and_json, examples, here_option, json_option
from windlass.cli.commands.agents import described, held_step
from windlass.cli.commands.watch import events, when_back
from windlass.cli.connection.client import Client, here
from windlass.cli.output import (
    Column,
    Row,
    bold,
    clear,
    one_line,
    paint_state,
    paragraph,
    say_answer,
    say_items,
    say_json_line,
)
from windlass.core.display import age

_EXAMPLES = """
windlass queue
windlass queue --all               what has landed, too
windlass queue --watch             shown anew at every step
windlass queue add my-branch       your own branch, through the same gate
windlass queue hold c3 --reason "after the release"
windlass queue first c4            before all others
windlass queue pause               nothing lands until `windlass queue resume`
"""

_QUEUE = (
    Column("CHANGE", lambda row: row["id"], style=bold),
    Column("STATE", lambda row: row["state"], style=paint_state),
    Column("AGENT", lambda row: row["agent"], spare=True),
    Column("AGE", lambda row: age(row["age_seconds"]) if "age_seconds" in row else "", spare=True),
    Column("TITLE", lambda row: row.get("title") or row["branch"], gives=True),
    Column("REASON", lambda row: row["reason"], gives=True),
)

reason_option = click.option("--reason", metavar="TEXT", help="Why, in a few words; everyone who looks sees it.")


@click.group("queue", epilog=examples(_EXAMPLES), invoke_without_command=True)
@click.option("--all", "everything", is_flag=True, help="Landed and closed changes, too.")
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
        _watch(ctx.obj, as_json=as_json, all=int(everything), path=path)
        return
    _show(ctx.obj.get("queue", all=int(everything), path=path), as_json=as_json)


def _watch(daemon: Client, *, as_json: bool, **query: Any) -> None:
    """Show the queue after each event that may change it. Listening begins first, so that no event is missed."""
    happened = events(daemon)
    answer = daemon.get("queue", **query)
    while True:
        if as_json:
            say_json_line(answer["items"])
        else:
            clear()
            _show(answer, as_json=False)
        next(event for event in happened if event["kind"].startswith(("change.", "project.")))
        answer = when_back(partial(daemon.going_on().get, "queue", **query))


def _show(answer: Row, *, as_json: bool) -> None:
    reds = (project["reason"] for project in answer.get("red", ()))
    red = (f"{reason}. Only changes that repair it go on; the others wait." for reason in reds)
    gone = (
        f"{item['project']}: {item['reason']}. Nothing lands there until it is back." for item in answer.get("gone", ())
    )
    notes = (*gone, *map(_paused, answer.get("paused", ())), *red, _what_is_next(answer["items"]))
    say_items(answer, _QUEUE, "", *notes, as_json=as_json)


def _paused(pause: Row) -> str:
    why = f" ({pause['reason']})" if pause["reason"] else ""
    return f"The queue of {pause['project']} is paused{why}: nothing lands. Go on: windlass queue resume"


def _what_is_next(items: list[Row]) -> str:
    moving = [item for item in items if not item.get("paused")]
    testing = [item["id"] for item in moving if item["state"] == "testing"]
    queued = [item["id"] for item in moving if item["state"] == "queued"]
    held = [item for item in items if item["state"] == "held"]
    if testing:
        words = f"Next: {', '.join(testing)}, being tested" + (f"; then {', '.join(queued)}" if queued else "") + "."
    elif queued:
        words = f"Next: {queued[0]}."
    else:
        paused = any(item.get("paused") and item["state"] == "queued" for item in items)
        words = "Nothing lands now." if paused else "Nothing waits to land."
    if not held:
        return words
    step = held_step(held[0], held[0].get("agent") or "")
    return f"{words} Held until someone acts: {', '.join(item['id'] for item in held)}. {step}".rstrip()


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
@daemon_and_json
def add_command(daemon: Client, branch: str, title: str | None, as_json: bool) -> None:
    """Put a branch of your own into the queue. It lands like an agent's work: when the checks pass on the result.

    What the branch holds now is taken. After more commits, add it again: they take the place of what waits."""
    made = daemon.post("queue", path=here(), branch=branch, title=title)
    text = f"{bold(made['id'])} wants to land {one_line(made['branch'])}: {one_line(made['title'])}"
    say_answer(made, f"{text}\n  windlass queue --watch    see it land", as_json=as_json)


def _declare_step(name: str, lines: str, about: str, *options: Any, then: str = "") -> None:
    """A command that moves one change by one step; `then` is the command that moves it back."""

    @command(name, lines, help=about, group=queue_command)
    @all_of(change_argument, *options, daemon_and_json)
    def step(daemon: Client, change: str, as_json: bool, reason: str | None = None) -> None:
        moved = daemon.post("changes", change, name, reason=reason)
        hint = f"\n  {then} {change}    let it go on" if then else ""
        say_answer(moved, one_line(described(moved)) + hint, as_json=as_json)


_declare_step(
    "drop",
    'windlass queue drop c3\nwindlass queue drop c3 --reason "c5 does it better"',
    "Give a change up. Its branch stays; an agent's task is given up with it.",
    reason_option,
)
_declare_step(
    "hold",
    'windlass queue hold c3\nwindlass queue hold c3 --reason "after the release"',
    "Let a change wait, also one that is being tested, until you release it.",
    reason_option,
    then="windlass queue release",
)
_declare_step(
    "release",
    "windlass queue release c3",
    "Let a held change go on. The gate holds it again if something is still in its way.",
)
_declare_step(
    "retry",
    "windlass queue retry c3",
    "Test a refused or held change again, as it is: nothing that was found before counts.",
)
_declare_step(
    "first",
    "windlass queue first c3",
    "Let a change go before all others of its project; what is being tested now is tested to its end.",
)


@command("pause", 'windlass queue pause\nwindlass queue pause --reason "release day"', group=queue_command)
@reason_option
@daemon_and_json
def pause_command(daemon: Client, reason: str | None, as_json: bool) -> None:
    """Let nothing land in the project of this folder. When this returns, main does not move any more."""
    answer = daemon.post("queue", "pause", path=here(), reason=reason)
    say_answer(answer, paragraph(_paused(answer)), as_json=as_json)


@command("resume", "windlass queue resume", group=queue_command)
@daemon_and_json
def resume_command(daemon: Client, as_json: bool) -> None:
    """Let changes land again in the project of this folder."""
    answer = daemon.post("queue", "resume", path=here())
    say_answer(answer, f"The queue of {one_line(answer['project'])} goes on.", as_json=as_json)
