"""Review: let an agent look at a change before it lands."""

from __future__ import annotations

import time

import click

from windlass.cli.arguments import Duration, change_argument, command, json_option
from windlass.cli.commands.work import how_driven, views
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
@click.option("--timeout", type=Duration(), help="With --wait: give up waiting after this long (exit 7).")
@json_option
@click.pass_context
def review_command(
    ctx: click.Context,
    /,
    *,
    change: str,
    agent: str | None,
    provider: str | None,
    script: str | None,
    shell: str | None,
    wait: bool,
    timeout: float | None,
    as_json: bool,
) -> None:
    """Let an agent review a change. It reads the change in a worktree of its own, and comments; until it has come to an
    end, the change does not land, and what it finds blocking goes back to the author."""
    if timeout and not wait:
        raise click.UsageError("--timeout says how long to wait, so it needs --wait.", ctx)
    deadline = time.monotonic() + timeout if timeout else None
    provider, options = how_driven(ctx, provider, script, shell)
    begun = ctx.obj.post("changes", change, "review", agent=agent, provider=provider, options=options)
    if not as_json:
        say(f"{bold(one_line(begun['agent']))} reviews {change}. What it says: windlass change show {change}")
    if wait:
        _wait(ctx.obj, begun, deadline, as_json=as_json)
    elif as_json:
        say_json(begun)


def _wait(daemon: Client, begun: Row, deadline: float | None, *, as_json: bool) -> None:
    """Follow a review to its end, and end as it ends."""
    task: Row = begun["task"]
    for view in views(daemon, task["id"], deadline, lambda _: None):
        task = view["task"]
    change = daemon.get("changes", begun["change"])
    [*_, last] = [None, *(each for each in change["reviews"] if each["from"] == begun["agent"])]
    comments = [each for each in change["comments"] if each["from"] == begun["agent"]]
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
