"""One change: show its state, its difference and its comments, and comment on it."""

from __future__ import annotations

from typing import Any

import click

from windlass.cli.arguments import COMMENT, change_argument, command, daemon_and_json, examples
from windlass.cli.commands.agents import described, given_text, next_steps
from windlass.cli.commands.receipt import check_line
from windlass.cli.connection.client import Client
from windlass.cli.output import Row, block, bold, dim, one_line, page, paint, say_answer, say_diff, say_json, say_parts
from windlass.core.display import age, short

_EXAMPLES = """
windlass change show c3
windlass change diff c3
windlass change comment c3 --file src/login.py --line 12 "[BLOCKING] This loses the lock."
windlass change resolve c3 m12
"""


@click.group("change", epilog=examples(_EXAMPLES))
def change_command() -> None:
    """See one change, and comment on it. A blocking comment holds it until it is settled."""


@command("show", "windlass change show c3\nwindlass change show c3 --json", group=change_command)
@change_argument
@daemon_and_json
def show_command(daemon: Client, change: str, as_json: bool) -> None:
    """Show the state of a change: its checks, its comments and its reviews."""
    shown = daemon.get("changes", change)
    if as_json:
        say_json(shown)
        return
    learned = [block(shown["learnings"], "  ")] if shown["learnings"] else []
    say_parts(_head(shown), _comments(shown), _reviews(shown), learned, next_steps(_steps(shown)))


def _head(change: Row) -> list[str]:
    facts = (
        ("Title", change["title"]),
        ("By", ", ".join(filter(None, (change["agent"] or "a person", change["task"])))),
        ("Branch", f"{change['branch']} at {short(change['head'])}"),
        ("Age", age(change["age_seconds"])),
        ("Returned", f"{change['returns']} times" if change["returns"] else ""),
        *(("Check", check_line(check)) for check in change["checks"]),
        ("Undoes", change["undoes"]),
    )
    return [bold(one_line(described(change))), "", *page(facts)]


def _comments(change: Row) -> list[str]:
    lines = []
    for comment in change["comments"]:
        mark = paint("BLOCKS  ", "red") if comment["open"] else ("settled  " if comment["blocking"] else "")
        reply = f" in reply to {comment['reply_to']}" if comment["reply_to"] else ""
        line = f":{comment['line']}" if comment["line"] else ""
        about = f"  {one_line(comment['file'])}{line}" if comment["file"] else ""
        by = f"by {one_line(comment['from'])}{reply}, {age(comment['age_seconds'])} ago"
        lines += [f"{mark}{bold(comment['id'])} {by}{about}", block(comment["body"], "  ")]
    return lines


def _reviews(change: Row) -> list[str]:
    words = {"approve": "approves", "changes": "wants changes"}
    lines = []
    for review in change["reviews"]:
        head = f"{one_line(review['from'])} {words.get(review['opinion'], '')} (at {short(review['head'])})"
        lines += [dim(head), block(review["summary"], "  ")]
    return lines


def _steps(change: Row) -> list[str]:
    """Commands that one may want next about this change."""
    key, state = change["id"], change["state"]
    if state in ("landed", "closed"):
        return [f"windlass receipt {key}"] if state == "landed" else []
    blocking = [comment["id"] for comment in change["comments"] if comment["open"]]
    release = [f"windlass queue release {key}"] if state == "held" and not blocking else []
    resolve = [f"windlass change resolve {key} {comment}" for comment in blocking]
    return [f"windlass change diff {key}", *resolve, *release]


@command("diff", "windlass change diff c3\nwindlass change diff c3 | git apply --stat", group=change_command)
@change_argument
@daemon_and_json
def diff_command(daemon: Client, change: str, as_json: bool) -> None:
    """Show what a change has changed since it left main; of a landed one, what it did to main."""
    say_diff(daemon.get("changes", change, "diff"), f"{change} changes nothing.", as_json=as_json)


@command(
    "comment",
    """
    windlass change comment c3 "I would call it b."
    windlass change comment c3 --file src/login.py --line 12 --blocking "This loses the lock."
    windlass change comment c3 "[BLOCKING] There is no test."      the same as --blocking
    windlass change comment c3 --reply m12 "It is taken in open()."
    windlass change comment c3 - < review.md
    """,
    group=change_command,
)
@change_argument
@click.argument("text")
@click.option("--file", metavar="PATH", help="The file it is about, as the difference names it.")
@click.option("--line", type=click.IntRange(min=1), metavar="N", help="The line in that file.")
@click.option("--blocking", is_flag=True, help="The change does not land until this is settled.")
@click.option("--reply", metavar="COMMENT", type=COMMENT, help="The comment that it answers, such as m12.")
@daemon_and_json
def comment_command(
    daemon: Client, /, *, change: str, text: str, reply: str | None, as_json: bool, **given: Any
) -> None:
    """Say something about a change; - reads standard input.

    It goes to its author: a suggestion is good to know, and what blocks is answered before the change can land. People
    may comment on any change, agents on one that they review, or in reply on their own."""
    made = daemon.post("changes", change, "comments", body=given_text(text, "TEXT"), reply_to=reply, **given)
    blocks = f"blocks {change} until it is settled: windlass change resolve {change} {made['id']}"
    say_answer(made, f"{bold(made['id'])} {blocks if made['blocking'] else 'is said.'}", as_json=as_json)


@command("resolve", "windlass change resolve c3 m12\nwindlass change resolve c3 m12 --json", group=change_command)
@change_argument
@click.argument("comment", type=COMMENT)
@daemon_and_json
def resolve_command(daemon: Client, change: str, comment: str, as_json: bool) -> None:
    """Accept that a blocking comment is settled. Who made it may, and a person; never the author of the change."""
    found = daemon.post("changes", change, "comments", comment, "resolve")
    say_answer(found, f"{bold(found['id'])} is settled.", as_json=as_json)
