"""One way to speak: a message, and a delivery to each of its readers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from windlass.core.address import HUMAN, SYSTEM
from windlass.core.agent import Agent
from windlass.core.change import Change, Hold
from windlass.core.errors import Conflict, NotFound
from windlass.core.message import Delivery, Kind, Message, Remark
from windlass.core.ports import Ports, Reading, Writing
from windlass.core.questions import compose_answer
from windlass.core.task import Task
from windlass.engine.bell import Bell

MOST = 10_000


def say(
    store: Writing,
    *,
    sender: str,
    to: tuple[str, ...],
    body: str,
    channel: str,
    now: float,
    kind: Kind = Kind.SAY,
    reply_to: str = "",
    remark: Remark | None = None,
) -> Message:
    """Within a transaction: append one message, and owe it to each of its readers."""
    message = Message(
        id=store.next_id(Message),
        channel=channel,
        sender=sender,
        to=to,
        body=body,
        kind=kind,
        reply_to=reply_to,
        sent_at=now,
        remark=remark,
    )
    deliveries = (Delivery(message=message.id, reader=each) for each in dict.fromkeys(to))
    store.record("message.sent", message.id, message, *deliveries)
    return message


def withdraw(store: Writing, channel: str, reason: str, now: float) -> None:
    """What a person was asked in this channel has settled itself."""
    for ask in store.open_asks(limit=1000):
        if ask.channel == channel:
            say(
                store,
                sender=str(SYSTEM),
                to=(str(HUMAN),),
                body=reason,
                channel=channel,
                now=now,
                kind=Kind.ANSWER,
                reply_to=ask.id,
            )


def nudge(store: Writing, agent: str, body: str, *, task: str, now: float) -> Message:
    """The daemon tells an agent to go on."""
    return say(store, sender=str(SYSTEM), to=(agent,), body=body, channel=channel_of(task), now=now, kind=Kind.NUDGE)


def channel_of(task: str) -> str:
    """The channel that a task's messages share."""
    return f"task/{task}" if task else "main"


def channel_of_change(change: Change) -> str:
    """Where people are asked about a change: with its task, or in a channel of its own."""
    return channel_of(change.task) if change.task else review_channel(change.id)


def review_channel(change: str) -> str:
    """What is said about a change by those who review it, and by its author to them."""
    return f"change/{change}"


def current_task(store: Reading, agent: str) -> Task | None:
    """What an agent is at, or was at last; of those it never began, the newest."""
    latest = store.latest_runs([agent]).get(agent)
    return store.find(Task, latest.task) if latest else store.task_of(agent)


def open_questions(store: Reading, agent: str) -> list[Message]:
    """What a person can answer: an agent's own questions, and what the gate asks about its change."""
    task = current_task(store, agent)
    change = store.change_of_task(task.id) if task else None
    own = store.open_asks(sender=agent)
    if task is None or change is None or change.hold not in _ASKS:
        return own
    return [*own, *asked_in(store, channel_of(task.id)), *asked_in(store, review_channel(change.id))]


_ASKS = (Hold.HUMAN, Hold.REVIEW, Hold.GUARD)
"""Holds about which a person may be asked something that they can answer."""


def asked_in(store: Reading, channel: str) -> list[Message]:
    """The last that the gate asked there, unless it was answered."""
    said = store.messages(channel, limit=MOST)
    answered = {each.reply_to for each in said}
    asked = [each for each in said if each.kind is Kind.ASK and each.sender == str(SYSTEM)]
    return [each for each in asked[-1:] if each.id not in answered]


@dataclass(frozen=True, slots=True)
class Asked:
    """An open question, and whose work it holds up."""

    agent: Agent
    task: Task
    message: Message


def _open(store: Reading, agent: Agent) -> Iterator[tuple[Task, Message]]:
    task = store.task_of(agent.id)
    if task is not None and not task.ended:
        yield from ((task, ask) for ask in open_questions(store, agent.id)[-1:])


class Talk:
    """What people say to agents."""

    def __init__(self, ports: Ports, bell: Bell) -> None:
        self.store = ports.store
        self.clock = ports.clock
        self.bell = bell

    async def questions(self, project: str = "") -> list[Asked]:
        """What a person can answer now, oldest first."""

        def question(store: Reading) -> list[Asked]:
            agents = [each for each in store.agents(limit=MOST) if project in ("", each.project)]
            asked = [Asked(each, task, ask) for each in agents for task, ask in _open(store, each)]
            return sorted(asked, key=lambda each: each.message.sent_at)

        return await self.store.read(question)

    async def answer(self, agent: str, words: Sequence[str]) -> Message:
        """Answer the open questions of an agent, as one text or by their ids; the answer wakes it."""
        now = self.clock.now()

        def step(store: Writing) -> Message:
            if store.find(Agent, agent) is None:
                raise NotFound(f"There is no agent {agent}.")
            asks = open_questions(store, agent)
            task = current_task(store, agent)
            if not asks or task is None or task.ended:
                raise Conflict(f"{agent} has no open question.", hint=f"See `windlass show {agent}`.")
            ask = asks[-1]
            body = compose_answer(words, ask.body if ask.sender == agent else "")
            return say(
                store,
                sender=str(HUMAN),
                to=(agent,),
                body=body if ask.sender == agent else f"{body}\n\n{ask.body}",  # then it was not asked by the agent
                channel=ask.channel,
                now=now,
                kind=Kind.ANSWER,
                reply_to=ask.id,
            )

        message = await self.store.write(step)
        self.bell.ring()
        return message
