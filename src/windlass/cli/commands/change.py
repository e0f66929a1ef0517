"""One change: its state, its difference, and what was said about it."""

from __future__ import annotations

import click

from windlass.cli.arguments import COMMENT, change_argument, command, json_option
from windlass.cli.commands.agents import described, given_text, say_diff
from windlass.cli.commands.receipt import check_line
from windlass.cli.connection.client import Client
from windlass.cli.output import Row, block, bold, dim, one_line, page, paint, say, say_json
from windlass.core.display import age, short

_EXAMPLES = """\b
Examples:
  windlass change show c3
  windlass change diff c3
  windlass change comment c3 --file src/login.py --line 12 "[BLOCKING] This loses the lock."
  windlass change resolve c3 m12"""


@click.group("change", epilog=_EXAMPLES)
def change_command() -> None:
    """See one change, and say something about it. What blocks holds it until it is settled."""


@command("show", "windlass change show c3\nwindlass change show c3 --json", group=change_command)
@change_argument
@json_option
@click.pass_obj
def show_command(daemon: Client, change: str, as_json: bool) -> None:
    """Show where a change stands: its checks, its comments, and what reviews came to."""
    shown = daemon.get("changes", change)
    if as_json:
        say_json(shown)
        return
    learned = [block(shown["learnings"], "  ")] if shown["learnings"] else []
    for part in (_head(shown), _comments(shown), _reviews(shown), learned, _next_steps(shown)):
        if part:
            say("\n".join(part) + "\n")


def _head(change: Row) -> list[str]:
    return [
        f"{bold(one_line(described(change)))}",
        "",
        *page(
            (
                ("Title", change["title"]),
                ("By", ", ".join(filter(None, (change["agent"] or "a person", change["task"])))),
                ("Branch", f"{change['branch']} at {short(change['head'])}"),
                ("Age", age(change["age_seconds"])),
                ("Returned", f"{change['returns']} times" if change["returns"] else ""),
                *(("Check", check_line(each)) for each in change["checks"]),
                ("Undoes", change["undoes"]),
            )
        ),
    ]


def _comments(change: Row) -> list[str]:
    lines = []
    for each in change["comments"]:
        mark = paint("BLOCKS  ", "red") if each["open"] else ("settled  " if each["blocking"] else "")
        reply = f" in reply to {each['reply_to']}" if each["reply_to"] else ""
        about = f"  {_place(each)}" if each["file"] else ""
        head = f"{mark}{bold(each['id'])} by {one_line(each['from'])}{reply}, {age(each['age_seconds'])} ago{about}"
        lines += [head, block(each["body"], "  ")]
    return lines


def _place(comment: Row) -> str:
    return one_line(f"{comment['file']}:{comment['line']}" if comment["line"] else comment["file"])


def _reviews(change: Row) -> list[str]:
    words = {"approve": "approves", "changes": "wants changes"}
    lines = []
    for each in change["reviews"]:
        head = f"{one_line(each['from'])} {words.get(each['opinion'], '')} (at {short(each['head'])})"
        lines += [dim(head), block(each["summary"], "  ")]
    return lines


def _next_steps(change: Row) -> list[str]:
    """What one would type next about this change."""
    key = change["id"]
    blocking = [each["id"] for each in change["comments"] if each["open"]]
    if change["state"] == "landed":
        steps = [f"windlass receipt {key}"]
    elif change["state"] == "closed":
        steps = []
    else:
        steps = [f"windlass change diff {key}", *(f"windlass change resolve {key} {each}" for each in blocking)]
        if change["state"] == "held" and not blocking:
            steps += [f"windlass queue release {key}"]
    return [dim("Next: ") + "   ".join(steps)] if steps else []


@command("diff", "windlass change diff c3\nwindlass change diff c3 | git apply --stat", group=change_command)
@change_argument
@json_option
@click.pass_obj
def diff_command(daemon: Client, change: str, as_json: bool) -> None:
    """Show what a change has changed since it left main; of a landed one, what it did to main."""
    answer = daemon.get("changes", change, "diff")
    if as_json:
        say_json(answer)
    else:
        say_diff(answer["diff"], f"{change} changes nothing.")


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
@json_option
@click.pass_obj
def comment_command(
    daemon: Client,
    /,
    *,
    change: str,
    text: str,
    file: str | None,
    line: int | None,
    blocking: bool,
    reply: str | None,
    as_json: bool,
) -> None:
    """Say something about a change; - reads standard input.

    It goes to its author: a suggestion is good to know, and what blocks is answered before the change can land. People
    may comment on any change, agents on one that they review, or in reply on their own."""
    body = given_text(text, "TEXT")
    made = daemon.post(
        *("changes", change, "comments"), body=body, file=file, line=line, blocking=blocking, reply_to=reply
    )
    if as_json:
        say_json(made)
    elif made["blocking"]:
        say(f"{bold(made['id'])} blocks {change} until it is settled: windlass change resolve {change} {made['id']}")
    else:
        say(f"{bold(made['id'])} is said.")


@command("resolve", "windlass change resolve c3 m12\nwindlass change resolve c3 m12 --json", group=change_command)
@change_argument
@click.argument("comment", type=COMMENT)
@json_option
@click.pass_obj
def resolve_command(daemon: Client, change: str, comment: str, as_json: bool) -> None:
    """Accept that a blocking comment is settled. Who made it may, and a person; never the author of the change."""
    found = daemon.post("changes", change, "comments", comment, "resolve")
    if as_json:
        say_json(found)
    else:
        say(f"{bold(found['id'])} is settled.")
