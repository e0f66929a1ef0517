"""Questions: show what agents ask people, and answer."""

from __future__ import annotations

import os
from typing import Any

import click

from windlass.cli.arguments import (
    AGENT_OR_TEXT,
    MESSAGE,
    agent_name,
    command,
    daemon_and_json,
    here_option,
    json_option,
)
from windlass.cli.commands.agents import given_text
from windlass.cli.commands.messaging import retried
from windlass.cli.connection.client import Client, inside_a_run
from windlass.cli.output import as_of, block, bold, dim, one_line, say, say_answer, say_json, say_json_line, tell
from windlass.core.display import age


@command("questions", "windlass questions\nwindlass questions --json | jq '.[].agent'")
@here_option
@daemon_and_json
def questions_command(daemon: Client, path: str | None, as_json: bool) -> None:
    """Show what agents, or the gate, want a person to decide; oldest first."""
    answer = daemon.get("questions", path=path)
    if as_json:
        say_json(answer["items"])
        return
    for question in answer["items"]:
        title = f"  {one_line(question['task_title'])}" if question["task_title"] else ""
        say(f"{bold(one_line(question['agent']))}{title}  {dim(age(question['age_seconds']) + ' ago')}")
        say(block(question["question"], "  "))
        say(dim(f"  windlass answer {question['agent']} {question['example']}") + "\n")
    if not answer["items"]:
        say("No questions.")
    say(as_of(answer))


@command(
    "answer",
    """
    windlass answer swift-otter "Yes, drop the old table."
    windlass answer swift-otter q1="yes" q2="port 8080"     by the questions' ids
    windlass answer swift-otter - < reply.txt
    windlass answer --conversation-id m12 "It is 8080."     what one agent asked another
    """,
)
@click.argument("name", type=AGENT_OR_TEXT, required=False)
@click.argument("words", nargs=-1, metavar="TEXT|ID=TEXT…")
@click.option(
    "--conversation-id", "conversation", type=MESSAGE, metavar="ID", help="Answer this question, as the one asked."
)
@json_option
@click.pass_context
def answer_command(
    ctx: click.Context, name: str | None, words: tuple[str, ...], conversation: str | None, as_json: bool
) -> None:
    """Answer an agent's questions; it goes on with its work. TEXT may be - to read standard input.

    With --conversation-id it is what an agent asked with `windlass ask`, and there is no NAME; it prints
    {conversationId, status}.
    """
    if name is None or bool(words) == bool(conversation):
        usage = (
            'Write `answer --conversation-id ID "…"`, without a name.' if conversation else 'Write `answer NAME "…"`.'
        )
        raise click.UsageError(usage, ctx)
    if conversation:
        _settle(ctx.obj, conversation, given_text(name, "TEXT"), as_json=as_json)
        return
    who = agent_name(name)
    given: dict[str, Any] = {"words": [given_text(word, "TEXT") for word in words]}
    given["key"] = os.urandom(10).hex()  # repeated after a broken connection, it is the same answer
    answer = retried(ctx.obj, lambda client: client.post("agents", who, "answer", **given), "it was NOT answered")
    say_answer(answer, f"{who} has your answer. See it go on: windlass logs {who} -f", as_json=as_json)


def _settle(daemon: Client, conversation: str, answer: str, *, as_json: bool) -> None:
    """Answer a conversation. The output is JSON in any case: programs read it."""
    words = ("conversations", conversation, "answer")
    settled = retried(daemon, lambda client: client.post(*words, answer=answer), "it was NOT answered")
    if not inside_a_run():
        asked = settled["askedAgentId"]
        tell(one_line(f"{settled['toAgentId']} has your answer to {conversation}, which it had asked {asked}."))
    said = {key: settled[key] for key in ("conversationId", "status")}
    say_json(said) if as_json else say_json_line(said)
