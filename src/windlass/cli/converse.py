"""Conversations: asking an agent and waiting for what it answers, and listening for questions."""

from __future__ import annotations

from typing import Any

import click

from windlass.cli.agents import given_text
from windlass.cli.client import Client
from windlass.cli.command import AgentName, Duration, Word, command, json_option
from windlass.cli.letters import begin, key_option, wait_for
from windlass.cli.output import Row, block, say, say_json, say_json_line

timeout_option = click.option(
    "--timeout", type=Duration(), metavar="TIME", help="Give up waiting after this, such as 10m, with exit code 7."
)


@command(
    "ask",
    """
    windlass ask --agent-id coder "Which port does the server use?"
    windlass ask --from tester --task-id t12 "Is open() safe to call twice?"    inside tester's run
    windlass ask --agent-id coder --no-wait "When you have time: why 0.3?"      the answer comes to your inbox
    """,
)
@click.argument("question")
@click.option("--from", "sender", type=AgentName(), metavar="NAME", help="Inside a run: your own name, and no other.")
@click.option("--agent-id", "agent", type=AgentName(), metavar="NAME", help="Ask this agent.")
@click.option("--task-id", "task", type=Word(), metavar="TASK", help="Ask whoever is at this task.")
@click.option("--phase-id", "phase", type=Word(), metavar="PHASE", help="Ask whoever is at a task of this phase.")
@key_option
@click.option("--no-wait", is_flag=True, help="Do not wait for the answer.")
@timeout_option
@json_option
@click.pass_context
def ask_command(ctx: click.Context, /, question: str, **given: Any) -> None:
    """Ask an agent, wait, and print its answer. QUESTION may be - to read standard input.

    An agent that is not at work is resumed to answer. --json is {conversationId, status, answer, fromAgentId}.
    """
    chosen = [name for name in ("agent", "task", "phase") if given[name]]
    if len(chosen) != 1:
        raise click.UsageError("Say whom to ask: one of --agent-id, --task-id and --phase-id.", ctx)
    daemon: Client = ctx.obj
    body = {f"{chosen[0]}_id": given[chosen[0]], "from": given["sender"], "key": given["key"]}
    begun = begin(daemon, question=given_text(question, "QUESTION"), **body)
    if given["no_wait"]:
        _say_begun(begun, given["as_json"])
        return
    _say_answer(daemon, _answer(daemon, begun["conversationId"], given["timeout"]), as_json=given["as_json"])


def _say_begun(begun: Row, as_json: bool) -> None:
    if as_json:
        say_json(begun)
    else:
        say(f"{begun['conversationId']} is asked; the answer comes to your inbox: windlass read")


def _answer(daemon: Client, conversation: str, seconds: float | None) -> Row:
    """The conversation, once it has an answer."""

    def look(client: Client, left: float) -> Row | None:
        found: Row = client.get("conversations", conversation, timeout=round(left, 3))
        return found if found["status"] == "answered" else None

    answered: Row = wait_for(look, daemon, seconds, f"Nobody answered {conversation}")
    return answered


def _say_answer(daemon: Client, answered: Row, *, as_json: bool) -> None:
    if as_json:
        say_json({key: answered[key] for key in ("conversationId", "status", "answer", "fromAgentId")})
    else:
        say(block(answered["answer"]))
    if answered["unread"]:
        daemon.post("messages", answered["answerId"], "ack")  # only now that it has been shown


@command(
    "listen",
    """
    windlass listen --agent-id coder                    inside coder's run: wait for the next question
    windlass listen --agent-id coder --timeout 5m &     in the background
    windlass answer --conversation-id m12 "8080."
    """,
)
@click.option("--agent-id", "agent", type=AgentName(), required=True, metavar="NAME", help="Who listens: you.")
@timeout_option
@json_option
@click.pass_obj
def listen_command(daemon: Client, agent: str, timeout: float | None, as_json: bool) -> None:
    """Wait for the next question to an agent that nobody has answered, and print it as one line of JSON.

    It is {conversationId, fromAgentId, question, phaseId, taskId}, the last two where the question has them. --json
    prints the same over several lines.
    """

    def look(client: Client, left: float) -> Row | None:
        found: Row | None = client.get("conversations", "listen", agent_id=agent, timeout=round(left, 3))[
            "conversation"
        ]
        return found

    asked = wait_for(look, daemon, timeout, f"Nobody asked {agent}")
    if as_json:
        say_json(asked)
    else:
        say_json_line(asked)
