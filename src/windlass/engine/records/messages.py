"""One way to speak: a message and a delivery to each of its readers, within a transaction; and the channels."""

from __future__ import annotations

from collections.abc import Collection, Container

from windlass.core.address import HUMAN, SYSTEM
from windlass.core.agents.definition import home_of
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Change, Hold
from windlass.core.nouns.message import GOOD_TO_KNOW, Delivery, Kind, Message, Remark
from windlass.core.nouns.project import Project
from windlass.core.nouns.task import Task
from windlass.core.ports.store import Reading, Writing
from windlass.engine.records import instances


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
    direct: bool = False,
    project: str = "",
    key: str = "",
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
        project=project or project_of(store, channel),
        direct=direct,
        key=key,
    )
    return put(store, message)


def put(store: Writing, message: Message, *, quiet: Container[str] = ()) -> Message:
    """Within a transaction: append a message, and owe it to each of its readers; some of them are not woken for it."""
    readers = dict.fromkeys(message.to)
    waits = {reader: GOOD_TO_KNOW for reader in readers if reader in quiet and reader != str(HUMAN)}
    deliveries = (
        Delivery(message=message.id, reader=reader, wakes=reader not in quiet, reason=waits.get(reader, ""))
        for reader in readers
    )
    store.record("message.sent", message.id, message, *deliveries)
    return message


def tell_person(
    store: Writing,
    body: str,
    *,
    channel: str,
    now: float,
    kind: Kind = Kind.REPORT,
    reply_to: str = "",
    direct: bool = False,
    project: str = "",
    key: str = "",
) -> Message:
    """Within a transaction: the system reports something to the person, or asks them with Kind.ASK."""
    return say(
        store,
        sender=str(SYSTEM),
        to=(str(HUMAN),),
        body=body,
        channel=channel,
        now=now,
        kind=kind,
        reply_to=reply_to,
        direct=direct,
        project=project,
        key=key,
    )


def tell_agent(store: Writing, agent: str, body: str, *, task: str, now: float, kind: Kind = Kind.SAY) -> Message:
    """Within a transaction: the system tells an agent something about its task; with Kind.REMINDER, to go on."""
    return say(store, sender=str(SYSTEM), to=(agent,), body=body, channel=channel_of(task), now=now, kind=kind)


def project_of(store: Reading, channel: str) -> str:
    """The project of a task's or a change's channel."""
    kind, _, key = channel.partition("/")
    found = store.find(Task, key) if kind == "task" else store.find(Change, key) if kind == "change" else None
    return found.project if found else ""


def home_channel(store: Reading, agent: Agent) -> str:
    """Where an agent speaks if it does not say where: in the channel of its instance, or of the project."""
    project = store.find(Project, agent.project)
    return home_of(agent.instance, project.name) if project else "main"


def withdraw(store: Writing, channel: str, reason: str, now: float, *, but: Collection[str] = ()) -> None:
    """What a person was asked in this channel has settled itself, but not what the gate asks about these changes."""
    for ask in store.open_asks(channel=channel, limit=1000):
        if not any(ask.key.startswith(f"{change} ") for change in but):
            _settle(store, ask, reason, now)


def withdraw_hold(store: Writing, change: Change, reason: str, now: float) -> None:
    """What the gate asked about a change has settled itself. What its author asks has not, nor what the gate asks about
    another repository's change: they share a channel."""
    for ask in store.open_asks(sender=str(SYSTEM), channel=channel_of_change(change), limit=1000):
        if _is_about(ask, change.id):
            _settle(store, ask, reason, now)


def _settle(store: Writing, ask: Message, reason: str, now: float) -> None:
    tell_person(store, reason, channel=ask.channel, now=now, kind=Kind.ANSWER, reply_to=ask.id)


def ask_about(store: Writing, change: Change, body: str, now: float) -> Message:
    """Within a transaction: the gate asks a person about a change; the key says about which."""
    key = f"{change.id} {store.last_seq()}"
    return tell_person(store, body, channel=channel_of_change(change), now=now, kind=Kind.ASK, key=key)


def _is_about(ask: Message, change: str) -> bool:
    """Whether the gate asked this about a change. What was asked before asks had keys may be about any."""
    return not ask.key or ask.key.startswith(f"{change} ")


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
    task, found = current_task(store, agent), store.find(Agent, agent)
    own = {each.id: each for each in store.open_asks(sender=agent)}
    instance = instances.of_agent(store, found) if found else None
    tasks = dict.fromkeys((*([task.id] if task else ()), *(instance.landing if instance else ())))
    changes = (each for key in tasks for each in store.changes_of_task(key) if each.agent == agent)
    held = [change for change in changes if change.hold in _ASKS]
    return [*(own | {ask.id: ask for each in held for ask in asked_about(store, each)}).values()]


_ASKS = (Hold.HUMAN, Hold.REVIEW, Hold.GUARD)
"""Holds about which a person may be asked something that they can answer."""


def asked_about(store: Reading, change: Change) -> list[Message]:
    """The last that the gate asked about a change, with its task and in its own channel, unless it was answered."""
    places = dict.fromkeys((channel_of(change.task), review_channel(change.id)))
    return [ask for channel in places for ask in _last_asked(store, channel, change.id)]


def _last_asked(store: Reading, channel: str, change: str) -> list[Message]:
    said = store.messages(channel)
    answered = {each.reply_to for each in said if each.kind is Kind.ANSWER}
    asked = [each for each in said if each.kind is Kind.ASK and each.sender == str(SYSTEM) and _is_about(each, change)]
    return [each for each in asked[-1:] if each.id not in answered]
