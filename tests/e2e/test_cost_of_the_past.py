"""What was before costs nothing: an order, a message and every tick are the same with thousands of finished agents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from cost_stage import Costs, costs, land, play, steps

from windlass.core.address import HUMAN
from windlass.core.messages.members import Speaker
from windlass.core.messages.new_message import NewMessage
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Change, ChangeState, CheckResult, Landing
from windlass.core.nouns.document import Document
from windlass.core.nouns.message import Delivery, Kind, Message, Receipt
from windlass.core.nouns.run import Outcome, Run
from windlass.core.nouns.task import Task, TaskState
from windlass.core.ports.store import Writing
from windlass.engine import Engine

__all__ = ["costs", "steps"]

PAST = 600
SOME = 300
"""More than any page or estimate looks back."""


def live_through(project: str, count: int, store: Writing) -> None:
    """So many agents have each asked, landed a change, and retired."""
    for number in range(count):
        agent = Agent(
            name=f"past{number}", project=project, provider="command", created_at=float(number), retired_at=number + 1.0
        )
        task = Task(
            id=store.next_id(Task), project=project, title="Done", agent=agent.id, state=TaskState.DONE, ended_at=1.0
        )
        run = Run(
            id=store.next_id(Run), agent=agent.id, task=task.id, number=1, provider="command", outcome=Outcome.DONE
        )
        tree = f"{number:040x}"
        check = CheckResult(tree=tree, command="true", passed=True, exit_code=0, started_at=float(number), seconds=0.1)
        landing = Landing(
            main="main", before=tree, after=tree, tree=tree, commits=(tree,), files=("a",), landed_at=float(number)
        )
        change = Change(
            id=store.next_id(Change),
            project=project,
            branch=agent.branch,
            head=tree,
            title="Was done",
            agent=agent.id,
            task=task.id,
            state=ChangeState.LANDED,
            checks=(check,),
            landing=landing,
        )
        ask = Message(
            id=store.next_id(Message),
            channel=f"task/{task.id}",
            sender=agent.id,
            to=("human",),
            body="Which?",
            kind=Kind.ASK,
            project=project,
        )
        answer = Message(
            id=store.next_id(Message),
            channel=f"task/{task.id}",
            sender="human",
            to=(agent.id,),
            body="This",
            kind=Kind.ANSWER,
            reply_to=ask.id,
            project=project,
        )
        told = Delivery(message=answer.id, reader=agent.id, receipt=Receipt.ACKED)
        output = Document(project=project, name=f"checks/{change.id}", body="ok", author="system")
        store.record("agent.retired", agent.id, agent, task, run, change, ask, answer, told, output)


def grown(costs: Costs, before: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Statements for which SQLite does more than before: a row that it looks at is a dozen steps."""
    found = {sql: (before.get(sql, 0), many) for sql, many in costs.steps.items()}
    return {sql: (few, many) for sql, (few, many) in found.items() if many > few + SOME}


async def fill(engine: Engine) -> None:
    """Give the only project a long past."""
    [project] = await engine.ports.store.read(lambda store: store.projects())
    await engine.ports.store.write(lambda store: live_through(project.id, PAST, store))


@pytest.mark.usefixtures("steps")
def test_an_order_costs_the_same_however_many_are_past(repo: Path, costs: Costs) -> None:
    """No question to the store looks at more rows, and there are not more of them, after hundreds of agents."""
    (repo / ".windlass").mkdir()
    (repo / ".windlass/.gitignore").write_text("*\n")

    async def story(engine: Engine) -> None:
        await land(engine, repo, 2)
        costs.restart()
        await land(engine, repo)
        before, statements = costs.steps, costs.statements
        await fill(engine)
        await land(engine, repo)
        costs.restart()
        await land(engine, repo)
        assert not grown(costs, before)
        assert costs.statements < 1.5 * statements

    play(story)


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize("to", [("past7",), (), ("human",)], ids=["to one of them", "in a channel", "to the person"])
def test_a_message_costs_the_same_however_many_are_past(repo: Path, costs: Costs, to: tuple[str, ...]) -> None:
    """Whoever is named is found by an index, and so is whoever the text mentions."""
    (repo / ".windlass").mkdir()
    (repo / ".windlass/.gitignore").write_text("*\n")
    person = Speaker(str(HUMAN))

    async def send(engine: Engine, body: str, *to: str) -> Message:
        caller = await engine.callers.identify(person, path=str(repo), register=True)
        return (await engine.callers.say(caller, NewMessage(body=body, to=to, channel="main"))).message

    async def story(engine: Engine) -> None:
        await send(engine, "Hello")
        costs.restart()
        await send(engine, "Hello @human and @nobody-else")
        before = costs.steps
        await fill(engine)
        costs.restart()
        sent = await send(engine, "Hello @past7", *to)
        assert sent.to == (to or ("past7",))
        assert not grown(costs, before)

    play(story, moving=False)
