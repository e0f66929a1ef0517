"""Steps and questions of an instance, each within one transaction."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from windlass.core import policy
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Change
from windlass.core.nouns.message import Message
from windlass.core.nouns.run import Outcome
from windlass.core.nouns.task import Task, TaskState, title_of
from windlass.core.ports.store import Reading, Writing
from windlass.core.workflows.instance import Facts, Instance, InstanceEnding
from windlass.engine.records import instances
from windlass.engine.records.changes import queue_change
from windlass.engine.records.closing import hush
from windlass.engine.records.messages import open_questions


def hopeless(store: Reading, instance: Instance) -> list[tuple[Task, TaskState, str]]:
    """Tasks that nobody will begin or go on with, how each ends, and why: one that needs a failed task, and while the
    instance drains, every task without a run."""
    live = {run.task for run in store.live_runs(project=instance.project)}
    found = []
    for task in store.unfinished_tasks(project=instance.project):
        if task.agent not in instance.agents:
            continue
        lost = next((need for need in _needs(store, task) if need.ended and need.state is not TaskState.DONE), None)
        if task.state is TaskState.OPEN and lost is not None:
            found.append((task, TaskState.FAILED, f"it needs {lost.id}, which is {lost.state}"))
        elif instance.draining and task.state is not TaskState.LANDING and task.id not in live:
            found.append((task, TaskState.CANCELLED, "its instance is ending"))
    return found


def unsettled(store: Reading) -> list[Instance]:
    """Instances that were stopped while a task of theirs is on its way to main."""
    early = (InstanceEnding.STOPPED, InstanceEnding.TIMEOUT)
    found = {}
    for task in store.unfinished_tasks():
        agent = store.find(Agent, task.agent)
        instance = instances.of_agent(store, agent) if agent else None
        if instance is not None and instance.ending in early and task.id in instance.landing:
            found[instance.id] = instance
    return [*found.values()]


def _needs(store: Reading, task: Task) -> list[Task]:
    return [found for need in task.needs if (found := store.find(Task, need))]


def is_blocked(store: Reading, task: Task, moving: Container[str]) -> bool:
    """Whether a task can't begin by itself: it needs another, or it is the turn of one that waits for a person."""
    agent = store.find(Agent, task.agent)
    turn = instances.turn_of(store, agent) if agent else ""
    return any(not need.ended for need in _needs(store, task)) or bool(turn and turn not in moving)


def is_settled(store: Reading, task: Task) -> bool:
    """Whether a task waits for a person."""
    change = store.change_of_task(task.id)
    return policy.is_settled(task, change, asked=bool(open_questions(store, task.agent)) if task.agent else False)


def asked(facts: Facts, store: Reading) -> list[str]:
    asked = (f"{task.agent} asks: {ask.body}" for task in facts.tasks for ask in open_questions(store, task.agent)[-1:])
    return [*dict.fromkeys(asked)]


def failed(instance: Instance, store: Reading) -> list[str]:
    latest = store.latest_runs(list(instance.agents))
    bad = (Outcome.FAILED, Outcome.CRASHED)
    return [
        f"{key}: {run.reason}"
        for key, run in latest.items()
        if run.outcome in bad and run.starting_at >= instance.started_at
    ]


def submit(store: Writing, instance: Instance, now: float) -> None:
    """Put what was committed into the queue: a change for each line of work, by its last author."""
    tasks = []
    for author, head in sorted(instance.heads.items()):
        agent = store.find(Agent, author)
        if agent is None:
            continue
        kickoff = store.find(Message, instance.kickoff)
        about = f": {title_of(kickoff.body)}" if kickoff else ""
        task = Task(
            id=store.next_id(Task),
            project=instance.project,
            title=title_of(f"{instance.workflow} {instance.channel}{about}"),
            agent=author,
            state=TaskState.LANDING,
            created_at=now,
        )
        change = Change(
            id="",
            project=instance.project,
            branch=agent.branch,
            head=head,
            title=task.title,
            agent=author,
            task=task.id,
            queued_at=now,
        )
        queue_change(store, change, task)
        tasks.append(task.id)
    store.record("instance.submitted", instance.channel, instance.submitted(tasks))


def landed(store: Reading, instance: Instance) -> Instance:
    """With its line back at main, where all that wanted to land has landed, or is given up."""
    changes = [each for task in instance.landing for each in store.changes_of_task(task)]
    return replace(instance, line="") if changes and all(change.ended for change in changes) else instance


def end(key: str, ending: InstanceEnding, reason: str, now: float, store: Writing) -> None:
    """An instance is over: each of its agents is retired when its worktree is saved, or now, if it never began."""
    instance = store.find(Instance, key)
    if instance is None or not instance.live:
        return
    for name in instance.agents:
        hush(store, name, f"its instance is over: {reason}")
        agent = store.find(Agent, name)
        if agent is not None and agent.retired_at is None and store.task_of(name) is None:
            store.record("agent.retired", name, replace(agent, retired_at=now), rescue="", rescues={}, kept="")
    store.record("instance.ended", instance.channel, replace(instance, ended_at=now, ending=ending, reason=reason))


def drain(key: str, store: Writing) -> None:
    instance = store.find(Instance, key)
    if instance is None or not instance.live:
        return  # it has ended by itself
    for agent in instance.agents:
        hush(store, agent, "its instance is ending")
    store.record("instance.draining", instance.channel, replace(instance, draining=True))
