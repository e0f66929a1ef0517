"""Talk: send messages to agents, and read messages."""

from __future__ import annotations

from typing import Any

import click

from windlass.cli.arguments import CHANNEL, READER, SAID_MESSAGE, acked_argument, all_of, command, daemon_and_json
from windlass.cli.commands.agents import given_text
from windlass.cli.commands.messaging import UNSEEN, place, post, project_place, reach, retried, say_messages, say_sent
from windlass.cli.connection.client import Client
from windlass.cli.output import Row, as_of, dim, say, say_json
from windlass.core.errors import WindlassError

to_option = click.option(
    "--to", multiple=True, type=READER, metavar="WHOM", help="name, name@instance or @instance; may be repeated."
)
key_option = click.option("--key", metavar="KEY", help="Your own id for it: the same again is not said twice.")
everyone_option = click.option(
    "--all", "everyone", is_flag=True, help="Everyone in the project; from a run, in its channel. Nobody is started."
)
as_option = click.option(
    "--from", "--as", "sender", type=READER, metavar="NAME", help="Inside a run: your own name, and no other."
)
channel_option = click.option(
    "--channel", type=CHANNEL, metavar="CHANNEL", help="main, @instance, task/t12 or change/c3. Default: where you are."
)
since_option = click.option(
    "--since", type=SAID_MESSAGE, metavar="ID", help="Only what was said after this message, such as m12."
)
limit_option = click.option(
    "--limit", type=click.IntRange(min=1, max=10_000), metavar="N", help="At most so many, the newest. Default: 20."
)

oldest_option = click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="At most so many, the oldest first."
)
full_option = click.option("--full", is_flag=True, help="Show long messages whole.")

# ── commands that exist for people and for agents: each is declared once, with its own help and options ──────


def declare_send(
    lines: str, about: str, *options: Any, usage: str, group: click.Group | None = None, **fixed: Any
) -> click.Command:
    """A command that sends one message. `fixed` goes to the daemon with each."""
    surplus = f'Put the text into quotes, and name its reader with --to: {usage} "…" --to NAME.'

    @command("send", lines, help=about, group=group, surplus=surplus)
    @click.argument("text")
    @all_of(to_option, everyone_option, channel_option, *options, as_option, daemon_and_json)
    def send(daemon: Client, /, text: str, as_json: bool, **given: Any) -> None:
        message = {name: given.get(name) for name in ("channel", "reply_to", "key")}
        message |= {"to": list(given["to"]), "all": given["everyone"] or None, "from": given["sender"]}
        if given.get("done") or given.get("files") or given.get("why"):
            message["handoff"] = {"done": given["done"] or "", "files": list(given["files"]), "why": given["why"] or ""}
        say_sent(post(daemon, body=given_text(text, "TEXT"), **message, **fixed), as_json)

    return send


def declare_peek(lines: str, about: str, *options: Any, group: click.Group | None = None) -> click.Command:
    """A command that shows messages and acknowledges none."""

    @command("peek", lines, help=about, group=group)
    @all_of(*options, since_option, limit_option, channel_option, full_option, daemon_and_json)
    def peek(daemon: Client, /, as_json: bool, full: bool, **which: Any) -> None:
        asked = {"path": project_place(), **which}
        answer = reach(daemon, lambda client: client.get("messages", **asked), UNSEEN)
        if as_json:
            say_json(answer["items"])
            return
        say_messages(answer["items"], "Nothing was said.", full=full)
        if group is None:
            say(as_of(answer))

    return peek


def declare_read(lines: str, about: str, *, group: click.Group | None = None) -> click.Command:
    """A command that shows unread messages, and acknowledges them once it has shown them."""

    @command("read", lines, help=about, group=group)
    @all_of(since_option, oldest_option, channel_option, daemon_and_json)
    def read(daemon: Client, /, as_json: bool, **which: Any) -> None:
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

    return read


def declare_ack(name: str, lines: str, about: str, *options: Any, group: click.Group | None = None) -> click.Command:
    """A command that acknowledges messages. An unknown id does not keep the others unacknowledged."""

    @command(name, lines, help=about, group=group)
    @all_of(acked_argument, *options, daemon_and_json)
    def ack(daemon: Client, messages: tuple[str, ...], as_json: bool, before: bool = False) -> None:
        def one(message: str) -> Row:
            words, given = ("messages", message, "ack"), {"before": before or None}
            return retried(daemon, lambda client: client.post(*words, **given), f"{message} was NOT acknowledged")

        acked: list[Row] = []
        problems: list[WindlassError] = []
        for message in dict.fromkeys(messages):
            try:
                acked.append(one(message))
            except WindlassError as error:
                problems.append(error)
        if as_json and acked:
            say_json(acked if len(messages) > 1 else acked[0])
        elif not as_json:
            for row in acked:
                earlier = row.get("acknowledged", 1) - 1
                say(f"{row['message']} is {row['status']}" + (f", with {earlier} before it." if earlier else "."))
        if problems:
            raise problems[0]

    return ack


# ── for people ───────────────────────────────────────────────────────────────────────────────────────────────

send_command = declare_send(
    """
    windlass send "Please look at the login race." --to reviewer
    windlass send "@coder the login race is back"          who is mentioned is told
    windlass send "Implement the auth module"              to the agent whose trigger words it contains
    windlass send "Stop what you do; main is red." --all
    windlass send - --to coder@pr-7 < findings.md
    windlass send "Write the tests." --to tester --done "The parser works." --file src/parser.py --why "0.3 needs it"
    """,
    """Say something to agents. TEXT may be - to read standard input.

    Agents named after an @ in TEXT get it; with --to or --all only those. A message that names nobody goes to the agent
    whose trigger words it contains, or to the only one at work; with --channel it is only posted there.

    An agent that is not at work is started with it; a busy one gets it as soon as it can. --done, --file and --why make
    it a hand-off, with TEXT as the work that is needed.

    --json is the message: id, time, from, to, message, channel, kind, reply_to, direct, claims, status (by reader) and
    readers, each with name, status, wakes, reason and outlook.
    """,
    click.option("--reply-to", type=SAID_MESSAGE, metavar="ID", help="The message that this answers."),
    key_option,
    click.option("--done", metavar="TEXT", help="Hand work on: what you have done."),
    click.option(
        "--file", "files", multiple=True, metavar="PATH", help="Hand work on: a file it is about; repeatable."
    ),
    click.option("--why", metavar="TEXT", help="Hand work on: why it is as it is."),
    usage="windlass send",
    seeks=True,
)

peek_command = declare_peek(
    """
    windlass peek                          the last 20 messages in this project
    windlass peek --to reviewer --limit 5
    windlass peek --channel task/t12 --since m40
    windlass peek --json | jq '.[].message'
    """,
    """Show what was said, without acknowledging anything. Very long messages are cut; --json and --full have them all.

    --json is a list of messages: id, time, from, to, message, channel, kind, reply_to, direct, claims, status (by
    reader) and readers.
    """,
    click.option("--to", type=READER, metavar="WHOM", help="Only messages to this one."),
)


@command(
    "inbox",
    """
    windlass inbox                 what you have not acknowledged
    windlass inbox coder           the same for an agent
    windlass inbox coder --all     all that it ever got
    """,
)
@click.argument("name", required=False, type=READER)
@click.option("--all", "everything", is_flag=True, help="Acknowledged messages, too.")
@full_option
@daemon_and_json
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


read_command = declare_read(
    "windlass read\nwindlass read --limit 1 --json",
    """Show what you have not read, and acknowledge it. --json is a list as in `windlass inbox`.

    It shows your messages of every project, and names the project of those from elsewhere. Inside a run, messages that
    your prompt contained are acknowledged with them, and not shown again.
    """,
)

ack_command = declare_ack(
    "ack",
    "windlass ack m12\nwindlass ack m12 m13 m14\nwindlass ack m14 --before",
    "Acknowledge messages to you, so that your inbox has them no longer. --json: of several, a list.",
    click.option("--before", is_flag=True, help="All that came before them, too."),
)
