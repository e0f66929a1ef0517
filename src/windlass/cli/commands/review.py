"""Review: let an agent review a change before it lands."""

from __future__ import annotations

from typing import Any

import click

from windlass.cli.arguments import change_argument, command, json_option
from windlass.cli.commands.work import deadline_of, how_driven, views, wait_timeout_option
from windlass.cli.connection.client import Client
from windlass.cli.output import Row, block, bold, one_line, say, say_json
from windlass.core.errors import WindlassError


@command(
    "review",
    """
    windlass review c3
    windlass review c3 --agent auditor         an agent with a file in .windlass/agents
    windlass review c3 --provider NAME --wait      exit 0 only when it approves
    """,
)
@change_argument
@click.option("--agent", metavar="NAME", help="Who reviews it. Default: `reviewer`, if the repository defines one.")
@click.option("--provider", metavar="NAME", help="Which coding CLI does it. Default: the setting work.provider.")
@click.option("--script", metavar="FILE", type=click.Path(), help="Play the reviewer from this script.")
@click.option("--command", "shell", metavar="CMD", help="This shell command is the reviewer.")
@click.option("--wait", is_flag=True, help="Return when it has come to an end; exit 0 only when it approves.")
@wait_timeout_option
@json_option
@click.pass_context
def review_command(
    ctx: click.Context, /, *, change: str, wait: bool, timeout: float | None, as_json: bool, **given: Any
) -> None:
    """Let an agent review a change. It reads the change in a worktree of its own, and comments; until it has come to an
    end, the change does not land, and what it finds blocking goes back to the author."""
    deadline = deadline_of(ctx, timeout, wait=wait)
    provider, options = how_driven(ctx, given["provider"], given["script"], given["shell"])
    begun = ctx.obj.post("changes", change, "review", agent=given["agent"], provider=provider, options=options)
    if not as_json:
        say(f"{bold(one_line(begun['agent']))} reviews {change}. What it says: windlass change show {change}")
    if wait:
        _wait(ctx.obj, begun, deadline, as_json=as_json)
    elif as_json:
        say_json(begun)


def _wait(daemon: Client, begun: Row, deadline: float | None, *, as_json: bool) -> None:
    """Follow a review to its end, and raise unless it approves."""
    task: Row = begun["task"]
    for view in views(daemon, task["id"], deadline, lambda _: None):
        task = view["task"]
    change = daemon.get("changes", begun["change"])
    [*_, last] = [None, *(review for review in change["reviews"] if review["from"] == begun["agent"])]
    comments = [comment for comment in change["comments"] if comment["from"] == begun["agent"]]
    if as_json:
        say_json({**begun, "task": task, "review": last, "comments": comments})
    elif last:
        say(block(last["summary"], "  "))
    if last is None:
        raise WindlassError(
            f"{begun['agent']} came to no end: {task['state']}: {task['reason'] or 'no reason was given'}",
            hint=f"Run `windlass logs {begun['agent']}` to see what happened.",
        )
    if last["opinion"] != "approve":
        raise WindlassError(
            f"{begun['agent']} wants changes: {', '.join(comment['id'] for comment in comments if comment['open'])}.",
            hint=f"Run `windlass change show {begun['change']}` to see them; its author is told.",
        )
