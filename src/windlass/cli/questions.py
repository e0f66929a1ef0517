"""Questions: what agents want to know, and answering them."""

from __future__ import annotations

import click

from windlass.cli.agents import given_text, name_argument
from windlass.cli.client import Client
from windlass.cli.command import command, here_option, json_option
from windlass.cli.output import as_of, block, bold, dim, one_line, say, say_json
from windlass.core.plain import age


@command("questions", "windlass questions\nwindlass questions --json | jq '.[].agent'")
@here_option
@json_option
@click.pass_obj
def questions_command(daemon: Client, path: str | None, as_json: bool) -> None:
    """Show what agents, or the gate, want a person to decide; oldest first."""
    answer = daemon.get("questions", path=path)
    if as_json:
        say_json(answer["items"])
        return
    for each in answer["items"]:
        title = f"  {one_line(each['task_title'])}" if each["task_title"] else ""
        say(f"{bold(one_line(each['agent']))}{title}  {dim(age(each['age_seconds']) + ' ago')}")
        say(block(each["question"], "  "))
        say(dim(f"  windlass answer {each['agent']} {each['example']}") + "\n")
    if not answer["items"]:
        say("No questions.")
    say(as_of(answer))


@command(
    "answer",
    """
    windlass answer swift-otter "Yes, drop the old table."
    windlass answer swift-otter q1="yes" q2="port 8080"     by the questions' ids
    windlass answer swift-otter - < reply.txt
    """,
)
@name_argument
@click.argument("words", nargs=-1, required=True, metavar="TEXT|ID=TEXT…")
@json_option
@click.pass_obj
def answer_command(daemon: Client, name: str, words: tuple[str, ...], as_json: bool) -> None:
    """Answer an agent's questions; it goes on with its work. TEXT may be - to read standard input."""
    answer = daemon.post("agents", name, "answer", words=[given_text(each, "TEXT") for each in words])
    if as_json:
        say_json(answer)
    else:
        say(f"{name} has your answer. See it go on: windlass logs {name} -f")
