"""Conversations: ask an agent and wait for its answer, and listen for questions."""

from __future__ import annotations

from typing import Any

import click

from windlass.cli.arguments import AGENT, ASKABLE, MESSAGE, WORD, Duration, command, json_option
from windlass.cli.commands.agents import given_text
from windlass.cli.commands.messaging import begin, place, retried, wait_for
from windlass.cli.commands.talk import key_option
from windlass.cli.connection.client import Client
from windlass.cli.output import Row, block, say_answer, say_json, say_json_line
from windlass.core.errors import TimedOut, Unanswered

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
    surplus='Put the question into quotes, and name the agent with --agent-id: windlass ask --agent-id NAME "…".',
)
@click.argument("question")
@click.option("--from", "sender", type=AGENT, metavar="NAME", help="Inside a run: your own name, and no other.")
@click.option("--agent-id", "agent", type=ASKABLE, metavar="NAME", help="Ask this agent.")
@click.option("--task-id", "task", type=WORD, metavar="TASK", help="Ask whoever is at this task.")
@click.option("--phase-id", "phase", type=WORD, metavar="PHASE", help="Ask whoever is at a task of this phase.")
@key_option
@click.option("--no-wait", is_flag=True, help="Do not wait for the answer.")
@timeout_option
@json_option
@click.pass_context
def ask_command(ctx: click.Context, /, question: str, **given: Any) -> None:
    """Ask an agent, wait, and print its answer. QUESTION may be - to read standard input.

    An agent that is not at work is resumed to answer. Exit code 8: it has ended, or is kept from it, and no answer will
    come as things stand; the question stays open. --json is {conversationId, status, answer, fromAgentId}, also where
    there is no answer: then with reason.
    """
    chosen = [name for name in ("agent", "task", "phase") if given[name]]
    if len(chosen) != 1:
        raise click.UsageError("Say whom to ask: one of --agent-id, --task-id and --phase-id.", ctx)
    daemon: Client = ctx.obj
    body = {f"{chosen[0]}_id": given[chosen[0]], "from": given["sender"], "key": given["key"]}
    begun = begin(daemon, question=given_text(question, "QUESTION"), **body)
    if given["no_wait"]:
        text = f"{begun['conversationId']} is asked; the answer comes to your inbox: windlass read"
        say_answer(begun, text, as_json=given["as_json"])
    else:
        _wait_and_say(daemon, begun["conversationId"], given["timeout"], as_json=given["as_json"])


def _wait_and_say(daemon: Client, conversation: str, seconds: float | None, *, as_json: bool) -> None:
    """Print the answer of a conversation, once it has one; or why none will come."""
    stays = (
        f"{conversation} stays open: an answer comes to `windlass inbox`, "
        f"and `windlass listen --conversation-id {conversation}` waits on for it."
    )

    def ask(client: Client, left: float) -> Row | None:
        found: Row = client.get("conversations", conversation, timeout=round(left, 3))
        if found["status"] == "answered":
            return found
        if found["reason"]:
            more = f"`windlass show {found['toAgentId']}` says more; a message to it may set it going again."
            raise Unanswered(f"No answer to {conversation} will come: {found['reason']}.", hint=f"{more}\n{stays}")
        return None

    try:
        answered = wait_for(ask, daemon, seconds, f"Nobody answered {conversation}", hint=stays)
    except (TimedOut, Unanswered) as error:
        if as_json:
            nothing = {"conversationId": conversation, "status": "pending", "answer": None, "fromAgentId": None}
            say_json(nothing | {"reason": str(error)})
        raise
    shown = {key: answered[key] for key in ("conversationId", "status", "answer", "fromAgentId")}
    say_answer(shown, block(answered["answer"]), as_json=as_json)
    if answered["unread"]:
        ack = ("messages", answered["answerId"], "ack")  # only now that it has been shown
        retried(daemon, lambda client: client.post(*ack), "it was NOT acknowledged")


@command(
    "listen",
    """
    windlass listen --agent-id coder                    inside coder's run: wait for the next question
    windlass listen --agent-id coder --timeout 5m &     in the background
    windlass answer --conversation-id m12 "8080."
    windlass listen --conversation-id m12               wait for the answer to what you asked
    """,
)
@click.option("--agent-id", "agent", type=AGENT, metavar="NAME", help="Who listens for questions: you.")
@click.option("--conversation-id", "conversation", type=MESSAGE, metavar="ID", help="Wait for its answer instead.")
@timeout_option
@json_option
@click.pass_context
def listen_command(
    ctx: click.Context, agent: str | None, conversation: str | None, timeout: float | None, as_json: bool
) -> None:
    """Wait for the next question to an agent that nobody has answered, and print it as one line of JSON.

    It is {conversationId, fromAgentId, question, phaseId, taskId}, the last two where the question has them. --json
    prints the same over several lines. With --conversation-id it prints an answer, as `windlass ask` does.
    """
    if bool(agent) == bool(conversation):
        raise click.UsageError("Say what to wait for: --agent-id for questions, --conversation-id for an answer.", ctx)
    if conversation:
        _wait_and_say(ctx.obj, conversation, timeout, as_json=as_json)
    else:
        _hear(ctx.obj, str(agent), timeout, as_json=as_json)


def _hear(daemon: Client, agent: str, timeout: float | None, *, as_json: bool) -> None:
    """Print the next question to an agent."""

    def look(client: Client, left: float) -> Row | None:
        asked = {"agent_id": agent, "path": place(), "timeout": round(left, 3)}
        found: Row | None = client.get("conversations", "listen", **asked)["conversation"]
        return found

    later = f"A question that comes later is not lost: `windlass inbox {agent}` shows it."
    asked = wait_for(look, daemon, timeout, f"Nobody asked {agent}", hint=later)
    say_json(asked) if as_json else say_json_line(asked)
