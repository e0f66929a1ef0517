"""The end of a task: whoever waited for something about it need not wait any longer."""

from __future__ import annotations

from windlass.core.change import ChangeState
from windlass.core.message import Receipt
from windlass.core.ports import Writing
from windlass.core.task import Task, TaskState
from windlass.engine.talk import channel_of, withdraw

EVENTS = {TaskState.DONE: "task.done", TaskState.FAILED: "task.failed", TaskState.CANCELLED: "task.cancelled"}


def end_task(store: Writing, task: Task, to: TaskState, *, now: float, reason: str) -> None:
    """Within a transaction: end it; drop mail nobody will read, close what nobody will mend, withdraw questions."""
    store.record(EVENTS[to], task.id, task.move(to, now=now, reason=reason))
    dead = [each.move(Receipt.FAILED) for each in store.undelivered(reader=task.agent)] if task.agent else []
    if dead:
        store.record("message.dropped", task.agent, *dead, reason=f"{task.id} is {to}")
    for change in store.changes_of_task(task.id):
        if change.state is ChangeState.REJECTED:  # nobody will mend it
            closed = change.move(ChangeState.CLOSED, reason=reason or f"{task.id} is {to}")
            store.record("change.closed", change.id, closed)
    withdraw(store, channel_of(task.id), f"{task.id} is {to}.", now)
