"""For agents, inside a run: saying that it is done, has questions or gives up; and its messages."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click

from windlass.cli.arguments import MessageId, Reader, command, json_option
from windlass.cli.commands.agents import given_text
from windlass.cli.commands.message_options import (
    UNSEEN,
    as_option,
    everyone_option,
    full_option,
    mail,
    post,
    reach,
    say_messages,
    say_sent,
)
from windlass.cli.commands.receipt import check_line
from windlass.cli.commands.talk import acknowledge
from windlass.cli.connection.client import Client, NotRunning, OutOfReach
from windlass.cli.output import say, say_json
from windlass.core.errors import NotAllowed, WindlassError

_A_LONG_CHECK = 4 * 3600.0
"""Seconds that an answer may take."""


class _WhoFirst(Reader):
    """A reader's name, then the text."""

    def convert(self, value: str, _param: click.Parameter | None, _ctx: click.Context | None) -> str:
        return value


@click.group("agent", epilog='\b\nExamples:\n  windlass agent complete "Fixed the race; added a test."')
def agent_command() -> None:
    """For agents, inside a run: talk to others, and end it by saying how it went. What you claim is checked."""


@command(
    "complete",
    'windlass agent complete "Fixed the race; added a test."\nwindlass agent complete - < report.md',
    group=agent_command,
)
@click.argument("result", default="")
@click.pass_obj
def complete_command(daemon: Client, result: str) -> None:
    """Say that the work is done and committed. RESULT is your report; - reads standard input."""
    _signal(daemon, {"status": "done", "result": given_text(result, "RESULT") if result else ""})


@command("ask", 'windlass agent ask "May I drop the old table?" "Which version is the oldest?"', group=agent_command)
@click.argument("questions", nargs=-1, required=True)
@click.pass_obj
def ask_command(daemon: Client, questions: tuple[str, ...]) -> None:
    """Ask a person; your run ends, and goes on with the answer."""
    asked = [{"id": f"q{n}", "question": given_text(each, "A question")} for n, each in enumerate(questions, start=1)]
    _signal(daemon, {"status": "questions", "questions": asked})


@command("fail", 'windlass agent fail "The tests need a database that is not here."', group=agent_command)
@click.argument("reason")
@click.pass_obj
def fail_command(daemon: Client, reason: str) -> None:
    """Give up, and say why."""
    _signal(daemon, {"status": "error", "error": given_text(reason, "REASON")})


@command("check", "windlass agent check\nwindlass agent check --json", group=agent_command)
@json_option
@click.pass_obj
def check_command(daemon: Client, as_json: bool) -> None:
    """Run the project's checks on what main would be with your commits. A green one counts when you are done."""
    found = daemon.only_if_running(patience=_A_LONG_CHECK).post("agent", "check")
    if as_json:
        say_json(found)
    else:
        say(found["output"].rstrip("\n"))
        say(check_line(found))
    if not found["passed"]:
        raise WindlassError("The checks did not pass.", hint="Mend it, commit, and check again.")


@command(
    "send-message",
    """
    windlass agent send-message supervisor "The auth requirements are unclear."
    windlass agent send-message --all "Main is red; wait with your merges."
    windlass agent send-message reviewer - < summary.md
    """,
    group=agent_command,
)
@click.argument("words", nargs=-1, required=True, metavar="[TO] TEXT", type=_WhoFirst())
@everyone_option
@as_option
@json_option
@click.pass_context
def send_message_command(
    ctx: click.Context, words: tuple[str, ...], everyone: bool, sender: str | None, as_json: bool
) -> None:
    """Say something to an agent, to a person (human), or with --all to everyone. TEXT may be - for standard input."""
    if len(words) != (1 if everyone else 2):
        usage = 'Write `send-message --all "…"`.' if everyone else 'Write `send-message TO "…"`.'
        raise click.UsageError(usage, ctx)
    to = [] if everyone else [Reader().convert(words[0], None, ctx)]
    message = {"body": given_text(words[-1], "TEXT"), "to": to, "all": everyone or None, "from": sender}
    say_sent(post(ctx.obj, **message), as_json)


@command(
    "list-messages",
    "windlass agent list-messages\nwindlass agent list-messages --all --json",
    group=agent_command,
)
@click.option("--all", "everything", is_flag=True, help="What you have acknowledged, too.")
@full_option
@json_option
@click.pass_obj
def list_messages_command(daemon: Client, everything: bool, full: bool, as_json: bool) -> None:
    """Show what you were told and have not acknowledged.

    --json is a list of {id, from, to, timestamp, body, status, reason, channel, kind, reply_to}; status is pending,
    delivered, read, acked or failed.
    """
    wanted = 1 if everything else None
    answer = reach(daemon, lambda client: client.get("inbox", all=wanted), UNSEEN)
    if as_json:
        say_json([mail(each) for each in answer["items"]])
    else:
        say_messages(answer["items"], "No messages.", full=full)


@command("ack-message", "windlass agent ack-message m12", group=agent_command)
@click.argument("messages", type=MessageId(), nargs=-1, required=True, metavar="ID…")
@json_option
@click.pass_obj
def ack_message_command(daemon: Client, messages: tuple[str, ...], as_json: bool) -> None:
    """Acknowledge messages to you."""
    acknowledge(daemon, messages, as_json=as_json)


def _signal(daemon: Client, signal: dict[str, Any]) -> None:
    """Tell the daemon; while there is none, or a sandbox of the agent's own is between us, leave it in its file."""
    file = os.environ.get("WINDLASS_SIGNAL")
    try:
        daemon.only_if_running().post("agent", "signal", **signal)
        say("Said. You can end now.")
    except NotRunning as error:
        if not file:
            raise NotAllowed(
                "This is for agents inside a run, and here is none.", hint="Run `windlass list` to see who is at work."
            ) from error
        _leave(Path(file), signal)
        say("Left for the daemon, which is away. You can end now.")
    except OutOfReach:
        if not file:
            raise
        _leave(Path(file), signal)
        say("Left for the daemon, which can't be reached from here. You can end now.")


def _leave(file: Path, signal: dict[str, Any]) -> None:
    """Whole or not at all: a reader never meets half a signal."""
    file.parent.mkdir(parents=True, exist_ok=True)
    half = file.with_name(f".{file.name}.{os.getpid()}")
    half.write_text(json.dumps(signal), encoding="utf-8")
    half.replace(file)
