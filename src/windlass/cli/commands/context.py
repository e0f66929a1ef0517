"""Context: the channel and the shared documents, for agents without MCP."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

from windlass.cli.arguments import DOCUMENT, WORD, Duration, command, daemon_and_json, examples
from windlass.cli.commands.agents import given_text
from windlass.cli.commands.messaging import UNSEEN, project_place, reach, retried, say_messages, unrepeated, wait_for
from windlass.cli.commands.talk import channel_option, declare_peek, declare_read, declare_send, since_option
from windlass.cli.connection.client import Client
from windlass.cli.output import Column, Row, block, bold, on_terminal, one_line, say, say_answer, say_items, say_json
from windlass.core.display import age
from windlass.core.errors import TimedOut

_EXAMPLES = """
windlass context send "@reviewer please look at src/auth.py"
windlass context read
windlass context wait --timeout 5m
windlass context document append "The login needs a lock."
"""


@click.group("context", epilog=examples(_EXAMPLES))
def context_command() -> None:
    """For agents: talk to the others, and share documents with them. Your messages carry your name."""


declare_send(
    """
    windlass context send "@reviewer please look at src/auth.py"
    windlass context send "Done with the parser." --to tester
    windlass context send - < report.md
    """,
    "Post to your channel. Write @name to wake an agent. TEXT may be - to read standard input.",
    usage="windlass context send",
    group=context_command,
)
declare_read(
    "windlass context read\nwindlass context read --since m12 --limit 5 --json",
    "Show your unread messages, and acknowledge them and those that your prompt contained.",
    group=context_command,
)
declare_peek(
    "windlass context peek\nwindlass context peek --since m12 --limit 5",
    "Show what was said in your channel, without acknowledging anything. --json: {id, time, from, message, …}.",
    group=context_command,
)


@command("wait", "windlass context wait\nwindlass context wait --since m12 --timeout 10m --json", group=context_command)
@since_option
@channel_option
@click.option("--timeout", type=Duration(), default=60.0, metavar="TIME", help="Give up after this. Default: 60s.")
@daemon_and_json
def wait_command(daemon: Client, /, timeout: float, as_json: bool, **which: str | None) -> None:
    """Wait until something is said that you can see, and show it; exit code 7 if nothing is in that time.

    It is not acknowledged: `windlass context read` does that. --json is a list as in `windlass context peek`; where
    nothing was said, {items, since}, and waiting again with that --since misses nothing.
    """
    since = which["since"]

    def look(client: Client, left: float) -> list[Row]:
        nonlocal since
        asked = {**which, "since": since}
        patience = round(left, 3) if since else 0  # a wait that is cut off goes on from where it began
        answer = client.get("messages", "wait", path=project_place(), timeout=patience, **asked)
        since = answer["since"]  # so that nothing is missed between two requests
        items: list[Row] = answer["items"]
        return items

    later = "Later messages wait in `windlass context read`."
    try:
        items = wait_for(look, daemon, timeout, "Nothing was said", hint=later)
    except TimedOut:
        if as_json:
            say_json({"items": [], "since": since})
        raise
    say_json(items) if as_json else say_messages(items, "")


# ── documents ────────────────────────────────────────────────────────────────────────────────────────────────

_DOCUMENTS = (
    Column("NAME", lambda row: row["name"], style=bold),
    Column("REVISION", lambda row: row["revision"]),
    Column("BY", lambda row: row["author"]),
    Column("AGE", lambda row: age(row["age_seconds"]), spare=True),
    Column("BYTES", lambda row: row["bytes"], spare=True),
)

_DOCUMENT_EXAMPLES = """
windlass context document list
windlass context document read
windlass context document append "The login needs a lock."
windlass context document write - --name findings --revision 3 < findings.md
"""

name_option = click.option(
    "--name", type=DOCUMENT, default="notes", metavar="NAME", help="Which document. Default: notes."
)
instance_option = click.option("--instance", type=WORD, metavar="INSTANCE", help="Of this instance. Default: yours.")


@context_command.group("document", epilog=examples(_DOCUMENT_EXAMPLES))
def document_command() -> None:
    """Texts that all agents of a project, or of an instance, share. Each write is a revision, and none is lost."""


@command("list", "windlass context document list --json", group=document_command)
@instance_option
@daemon_and_json
def list_command(daemon: Client, instance: str | None, as_json: bool) -> None:
    """Show which documents there are. --json: a list of {name, revision, author, time, age_seconds, bytes}."""
    none = 'No document yet. Write one: windlass context document append "…"'
    say_items(_get(daemon, instance=instance), _DOCUMENTS, none, as_json=as_json)


@command(
    "read",
    "windlass context document read\nwindlass context document read --name findings --json",
    group=document_command,
)
@name_option
@click.option("--revision", type=click.IntRange(min=1), metavar="N", help="An earlier revision. Default: the newest.")
@instance_option
@daemon_and_json
def document_read_command(daemon: Client, name: str, revision: int | None, instance: str | None, as_json: bool) -> None:
    """Print a document. --json has its revision, which `write --revision` wants."""
    document = _get(daemon, name, instance=instance, revision=revision)
    if as_json:
        say_json(document)
    elif on_terminal(sys.stdout):
        say(block(document["body"]))
    elif sys.stdout:  # into a file, byte by byte
        sys.stdout.buffer.write(document["body"].encode("utf-8", "surrogateescape"))


@command(
    "write",
    """
    windlass context document write "Begin with the parser."
    windlass context document write - --name findings --revision 3 < findings.md     only if it is still revision 3
    """,
    group=document_command,
)
@click.argument("text")
@name_option
@click.option("--revision", type=click.IntRange(min=0), metavar="N", help="Refuse if it is not at this revision.")
@instance_option
@daemon_and_json
def write_command(daemon: Client, /, name: str, text: str, as_json: bool, **given: Any) -> None:
    """Write a document anew. TEXT may be - for standard input, and empty. With --revision 0 it must be new."""
    body = {"body": given_text(text, "TEXT", may_be_empty=True), **given}
    attempt = unrepeated if given["revision"] is not None else retried  # a revision exists once
    _write(daemon, attempt, name, as_json, **body)


@command(
    "append",
    """
    windlass context document append "The login needs a lock."
    windlass context document append - --name findings < more.md
    """,
    group=document_command,
)
@click.argument("text")
@name_option
@instance_option
@daemon_and_json
def append_command(daemon: Client, text: str, name: str, instance: str | None, as_json: bool) -> None:
    """Add to the end of a document, whoever else writes at the same time. TEXT may be - to read standard input."""
    body = given_text(text, "TEXT")
    _write(daemon, unrepeated, name, as_json, body=body, append=True, instance=instance)


def _write(daemon: Client, attempt: Callable[..., Row], name: str, as_json: bool, **given: Any) -> None:
    """Write a document, as often as `attempt` allows."""
    given["path"] = project_place()
    document = attempt(daemon, lambda client: client.post("documents", name, **given), "it was NOT written")
    shown = {key: value for key, value in document.items() if key != "body"}
    say_answer(shown, f"{one_line(document['name'])} is at revision {document['revision']}.", as_json=as_json)


def _get(daemon: Client, *path: str, **given: Any) -> Row:
    asked = {"path": project_place(), **given}
    return reach(daemon, lambda client: client.get("documents", *path, **asked), UNSEEN)


@command(
    "history", "windlass context document history\nwindlass context document read --revision 2", group=document_command
)
@name_option
@instance_option
@daemon_and_json
def history_command(daemon: Client, name: str, instance: str | None, as_json: bool) -> None:
    """Show who wrote which revision of a document, and when."""
    say_items(_get(daemon, name, "history", instance=instance), _DOCUMENTS, "", as_json=as_json)
