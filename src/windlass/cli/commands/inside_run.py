"""For agents, inside a run: report that the work is done, ask, or give up; and their messages."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import click

from windlass.cli.arguments import READER_OR_TEXT, address, command, daemon_and_json, examples, json_option
from windlass.cli.commands.agents import given_text
from windlass.cli.commands.messaging import UNSEEN, post, reach, say_messages, say_sent
from windlass.cli.commands.receipt import check_line
from windlass.cli.commands.talk import as_option, declare_ack, everyone_option, full_option
from windlass.cli.connection.client import Client, NotRunning, OutOfReach
from windlass.cli.output import Row, say, say_json
from windlass.core.errors import NotAllowed, WindlassError

_A_LONG_CHECK = 4 * 3600.0
"""Seconds that an answer may take."""


@click.group("agent", epilog=examples('windlass agent complete "Fixed the race; added a test."'))
def agent_command() -> None:
    """For agents, inside a run: talk to others, and end it by saying how it went. Windlass checks your claim."""


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
@daemon_and_json
def check_command(daemon: Client, as_json: bool) -> None:
    """Run the project's checks on what main would be with your commits. A green one counts when you are done."""
    found = daemon.only_if_running(patience=_A_LONG_CHECK).post("agent", "check")
    if as_json:
        say_json(found)
    else:
        say(found["output"].rstrip("\n"))
        say(check_line(found))
    if not found["passed"]:
        raise WindlassError("The checks did not pass.", hint="Repair it, commit, and check again.")


@command(
    "send-message",
    """
    windlass agent send-message supervisor "The auth requirements are unclear."
    windlass agent send-message --all "Main is red; wait with your merges."
    windlass agent send-message reviewer - < summary.md
    """,
    group=agent_command,
)
@click.argument("words", nargs=-1, required=True, metavar="[TO] TEXT", type=READER_OR_TEXT)
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
    to = [] if everyone else [address(words[0])]
    message = {"body": given_text(words[-1], "TEXT"), "to": to, "all": everyone or None, "from": sender}
    say_sent(post(ctx.obj, **message), as_json)


@command(
    "list-messages", "windlass agent list-messages\nwindlass agent list-messages --all --json", group=agent_command
)
@click.option("--all", "everything", is_flag=True, help="Messages that you have acknowledged, too.")
@full_option
@daemon_and_json
def list_messages_command(daemon: Client, everything: bool, full: bool, as_json: bool) -> None:
    """Show what you were told and have not acknowledged.

    --json is a list of {id, from, to, timestamp, body, status, reason, channel, kind, reply_to}; status is pending,
    delivered, read, acked or failed.
    """
    wanted = 1 if everything else None
    answer = reach(daemon, lambda client: client.get("inbox", all=wanted), UNSEEN)
    if as_json:
        say_json([_plain(message) for message in answer["items"]])
    else:
        say_messages(answer["items"], "No messages.", full=full)


def _plain(message: Row) -> dict[str, Any]:
    """A message with the keys that --json promises."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(message["time"]))
    plain = {name: message[name] for name in ("id", "from", "to")}
    plain |= {"timestamp": stamp, "body": message["message"], "status": message["receipt"]}
    return plain | {name: message[name] for name in ("reason", "channel", "kind", "reply_to")}


declare_ack("ack-message", "windlass agent ack-message m12", "Acknowledge messages to you.", group=agent_command)


def _signal(daemon: Client, signal: dict[str, Any]) -> None:
    """Tell the daemon how the work went; if it can't be reached, write the signal file for it."""
    file = os.environ.get("WINDLASS_SIGNAL")
    try:
        daemon.only_if_running().post("agent", "signal", **signal)
        say("Said. You can end now.")
        return
    except NotRunning as error:
        if not file:
            raise NotAllowed(
                "This is for agents inside a run, and here is none.", hint="Run `windlass list` to see who is at work."
            ) from error
        why = "is away"
    except OutOfReach:
        if not file:
            raise
        why = "can't be reached from here"
    path = Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.{os.getpid()}")
    half.write_text(json.dumps(signal), encoding="utf-8")
    half.replace(path)  # in one step: the daemon never reads half a signal
    say(f"Left for the daemon, which {why}. You can end now.")
