"""Talk: saying something to agents, and reading what was said."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from windlass.cli.arguments import MessageId, Reader, SaidId, Taught, command, json_option
from windlass.cli.commands.agents import given_text
from windlass.cli.commands.message_options import (
    UNSEEN,
    as_option,
    channel_option,
    everyone_option,
    full_option,
    key_option,
    limit_option,
    oldest_option,
    place,
    post,
    project_place,
    reach,
    retried,
    say_messages,
    say_sent,
    since_option,
    to_option,
)
from windlass.cli.connection.client import Client
from windlass.cli.output import Row, as_of, dim, say, say_json
from windlass.core.errors import WindlassError


class _Send(Taught):
    """Says how a text and its reader are told apart."""

    surplus = 'Put the text into quotes, and name its reader with --to: windlass send "…" --to NAME.'


@command(
    "send",
    """
    windlass send "Please look at the login race." --to reviewer
    windlass send "@coder the login race is back"          who is mentioned is told
    windlass send "Implement the auth module"              to the agent whose triggers stand in it
    windlass send "Stop what you do; main is red." --all
    windlass send - --to coder@pr-7 < findings.md
    windlass send "Write the tests." --to tester --done "The parser works." --file src/parser.py --why "0.3 needs it"
    """,
    cls=_Send,
)
@click.argument("text")
@to_option
@everyone_option
@channel_option
@click.option("--reply-to", type=SaidId(), metavar="ID", help="The message that this answers.")
@key_option
@click.option("--done", metavar="TEXT", help="Hand work on: what you have done.")
@click.option("--file", "files", multiple=True, metavar="PATH", help="Hand work on: a file it is about; repeatable.")
@click.option("--why", metavar="TEXT", help="Hand work on: why it is as it is.")
@as_option
@json_option
@click.pass_obj
def send_command(daemon: Client, /, text: str, as_json: bool, **given: Any) -> None:
    """Say something to agents. TEXT may be - to read standard input.

    Names after an @ in TEXT are told; with --to or --all only those. What names nobody goes to the agent whose triggers
    stand in it, or to the only one at work; with --channel it is only posted there.

    One that is not at work is started with it; one that is busy gets it as soon as it can. --done, --file and --why
    make it a hand-off, with TEXT as what is needed.

    --json is the message: id, time, from, to, message, channel, kind, reply_to, direct, claims, status (by reader) and
    readers, each with name, status, wakes, reason and outlook.
    """
    body = given_text(text, "TEXT")
    message = {"body": body, "to": list(given["to"]), "all": given["everyone"] or None, "from": given["sender"]}
    message |= {name: given[name] for name in ("channel", "reply_to", "key")}
    say_sent(post(daemon, **message, handoff=_handoff(given), seeks=True), as_json)


def _handoff(given: Row) -> dict[str, Any] | None:
    """What is handed on, if it is; what is needed is the text itself."""
    if not (given["done"] or given["files"] or given["why"]):
        return None
    return {"done": given["done"] or "", "files": list(given["files"]), "why": given["why"] or ""}


@command(
    "peek",
    """
    windlass peek                          the last 20 messages in this project
    windlass peek --to reviewer --limit 5
    windlass peek --channel task/t12 --since m40
    windlass peek --json | jq '.[].message'
    """,
)
@click.option("--to", type=Reader(), metavar="WHOM", help="Only what was said to this one.")
@since_option
@limit_option
@channel_option
@full_option
@json_option
@click.pass_obj
def peek_command(daemon: Client, /, as_json: bool, full: bool, limit: int | None, **which: str | None) -> None:
    """Show what was said, without acknowledging anything. Very long messages are cut; --json and --full have them all.

    --json is a list of messages: id, time, from, to, message, channel, kind, reply_to, direct, claims, status (by
    reader) and readers.
    """
    asked = {"path": project_place(), "limit": limit, **which}
    answer = reach(daemon, lambda client: client.get("messages", **asked), UNSEEN)
    if as_json:
        say_json(answer["items"])
        return
    say_messages(answer["items"], "Nothing was said.", full=full)
    say(as_of(answer))


@command(
    "inbox",
    """
    windlass inbox                 what you have not acknowledged
    windlass inbox coder           the same for an agent
    windlass inbox coder --all     all that it ever got
    """,
)
@click.argument("name", required=False, type=Reader())
@click.option("--all", "everything", is_flag=True, help="What was acknowledged, too.")
@full_option
@json_option
@click.pass_obj
def inbox_command(daemon: Client, /, name: str | None, everything: bool, full: bool, as_json: bool) -> None:
    """Show what someone was told and has not acknowledged, and how far each message got.

    --json is a list of messages as in `windlass peek`, each with reader, receipt (pending, delivered, read, acked or
    failed), reason, project and here (whether that is the project where you stand).
    """
    asked = {"name": name, "all": 1 if everything else None, "path": place()}
    answer = reach(daemon, lambda client: client.get("inbox", **asked), UNSEEN)
    if as_json:
        say_json(answer["items"])
        return
    say_messages(answer["items"], f"Nothing for {name}." if name else "Nothing for you.", full=full)
    say(as_of(answer))


@command("read", "windlass read\nwindlass read --limit 1 --json")
@since_option
@oldest_option
@channel_option
@json_option
@click.pass_obj
def read_command(daemon: Client, /, as_json: bool, **which: Any) -> None:
    """Show what you have not read, and acknowledge it. --json is a list as in `windlass inbox`.

    Your mail of every project is there; what is not of this one says of which it is. Inside a run, what your prompt has
    told you is acknowledged with it, and not shown again.
    """
    read(daemon, as_json=as_json, **which)


def read(daemon: Client, *, as_json: bool, **which: Any) -> None:
    """Show what is unread, and acknowledge it once it has been shown."""
    given = {**which, "look": True, "path": place()}
    answer = retried(daemon, lambda client: client.post("inbox", "read", **given), "nothing was read")
    items, told = answer["items"], answer["told"]
    if as_json:
        say_json(items)
    else:
        say_messages(items, "Nothing new.")
        if told:
            say(dim(f"Acknowledged, too, because your prompt told you: {', '.join(told)}."))
    if seen := [*told, *(item["id"] for item in items)]:
        retried(daemon, lambda client: client.post("inbox", "ack", ids=seen), "it was NOT acknowledged")


@command("ack", "windlass ack m12\nwindlass ack m12 m13 m14\nwindlass ack m14 --before")
@click.argument("messages", type=MessageId(), nargs=-1, required=True, metavar="ID…")
@click.option("--before", is_flag=True, help="All that came before them, too.")
@json_option
@click.pass_obj
def ack_command(daemon: Client, messages: tuple[str, ...], before: bool, as_json: bool) -> None:
    """Acknowledge messages to you, so that your inbox has them no longer. --json: of several, a list."""
    acknowledge(daemon, messages, before=before, as_json=as_json)


def _acknowledged(message: str, before: bool, daemon: Client) -> Row:
    acked: Row = daemon.post("messages", message, "ack", before=before or None)
    return acked


def _acked_line(acked: Row) -> str:
    earlier = acked.get("acknowledged", 1) - 1
    return f"{acked['message']} is {acked['status']}" + (f", with {earlier} before it." if earlier else ".")


def acknowledge(daemon: Client, messages: tuple[str, ...], *, before: bool = False, as_json: bool) -> None:
    """Acknowledge messages. One that was never sent keeps none of the others."""
    acked: list[Row] = []
    problems: list[WindlassError] = []
    for name in dict.fromkeys(messages):
        try:
            acked.append(retried(daemon, partial(_acknowledged, name, before), f"{name} was NOT acknowledged"))
        except WindlassError as error:
            problems.append(error)
    if as_json and acked:
        say_json(acked if len(messages) > 1 else acked[0])
    elif acked:
        say("\n".join(map(_acked_line, acked)))
    if problems:
        raise problems[0]
