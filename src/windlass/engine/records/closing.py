"""The end of a task or a change: whoever waited for it need not wait any longer, and what was learned is kept."""

from __future__ import annotations

from dataclasses import replace

from windlass.core.address import SYSTEM
from windlass.core.nouns.change import Change, ChangeState
from windlass.core.nouns.document import Document
from windlass.core.nouns.message import Delivery, Message, Receipt
from windlass.core.nouns.task import Task, TaskState
from windlass.core.ports.store import Reading, Writing
from windlass.core.render import learnings
from windlass.engine.records.documents import revised
from windlass.engine.records.messages import channel_of, review_channel, withdraw

EVENTS = {TaskState.DONE: "task.done", TaskState.FAILED: "task.failed", TaskState.CANCELLED: "task.cancelled"}


def end_task(store: Writing, task: Task, to: TaskState, *, now: float, reason: str) -> None:
    """Within a transaction: end it; drop mail nobody will read, close what nobody will mend, withdraw questions."""
    store.record(EVENTS[to], task.id, task.move(to, now=now, reason=reason))
    dead = _about(store, task, tried=to is TaskState.FAILED) if task.agent else []
    if dead:
        why = f"{task.id} is {to}"
        failed = (replace(each.move(Receipt.FAILED), reason=why) for each in dead)
        store.record("message.dropped", task.agent, *failed, reason=why)
    if task.agent and to is TaskState.CANCELLED:
        hush(store, task.agent, "stopped by hand")
    for change in store.changes_of_task(task.id):
        if change.with_author:  # nobody will mend it
            close_change(store, change, reason or f"{task.id} is {to}", now)
    held = [each.id for each in store.changes_of_task(task.id) if each.hold and to is TaskState.FAILED]
    withdraw(store, channel_of(task.id), f"{task.id} is {to}.", now, but=held)


def hush(store: Writing, agent: str, reason: str) -> None:
    """What an agent has not been told yet wakes it no more: it is told when a person calls on it again."""
    owed = [replace(each, wakes=False, reason=reason) for each in store.undelivered(reader=agent) if each.wakes]
    if owed:
        store.record("message.held", agent, *owed, reason=reason)


def _about(store: Reading, task: Task, *, tried: bool) -> list[Delivery]:
    """What its agent was to be told about this task, and what no run of it has survived, where that was `tried`.

    What others want of the agent besides is still owed to it.
    """
    owed = [(each, store.find(Message, each.message)) for each in store.undelivered(reader=task.agent)]
    channels = [channel_of(task.id), *(review_channel(each.id) for each in store.changes_of_task(task.id))]
    runs = {each.id for each in store.runs_of(task.agent) if each.task == task.id} if owed and tried else set()
    return [each for each, said in owed if said is None or said.channel in channels or each.run in runs]


def close_change(store: Writing, change: Change, reason: str, now: float) -> Change:
    """Within a transaction: give a change up. Why it was refused, however often, is kept as a document."""
    closed = change.move(ChangeState.CLOSED, reason=reason)
    kept = [_learned(store, closed, now)] if change.returns else []
    store.record("change.closed", change.id, closed, *kept)
    return closed


def _learned(store: Writing, change: Change, now: float) -> Document:
    said = store.messages(channel_of(change.task))
    refusals = [each.body for each in said if (each.sender, each.to) == (str(SYSTEM), (change.agent,))]
    return revised(store, change.project, learned_in(change), learnings(change, refusals), now=now)


def learned_in(change: Change) -> str:
    """The document that keeps what was learned from a change that never landed."""
    return f"learnings/{change.id}"
