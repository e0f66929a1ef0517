"""What the instance of a workflow allows its agents, and what it records of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from windlass.core.address import HUMAN
from windlass.core.errors import NotAllowed
from windlass.core.nouns.agent import Agent, Permissions
from windlass.core.nouns.message import Kind, MailItem
from windlass.core.nouns.run import Cause, Run
from windlass.core.nouns.task import Task
from windlass.core.ports.store import Reading, Writing
from windlass.core.workflows.instance import Instance, begins, decide_turn
from windlass.engine.slots import lenders


def of_agent(store: Reading, agent: Agent) -> Instance | None:
    """The instance that an agent takes part in."""
    return store.find(Instance, f"{agent.project}/{agent.instance}") if agent.workflow else None


def enter(run: Run, agent: Agent, store: Writing) -> str | None:
    """Within a transaction: where an agent begins something new, and note it; None: it goes on where it is."""
    instance = of_agent(store, agent)
    if instance is None or run.cause not in (Cause.TASK, Cause.CALL):
        return None
    earlier = [each for each in store.runs_of(agent.id) if each.number < run.number]
    if earlier and earlier[-1].task == run.task:
        return None
    entered = instance.entered(agent)
    if entered != instance:
        store.record("instance.entered", entered.channel, entered)
    return instance.start_of(agent)


def admits(store: Reading, agent: Agent, items: Iterable[MailItem], task: Task | None) -> bool:
    """Whether an agent may be started, as far as its instance goes."""
    instance = of_agent(store, agent)
    return instance is None or instance.admits(agent.id, items, task)


def writer_beside(agent: Agent, store: Reading) -> Agent | None:
    """Who carries the line on while this one, who only reads it, begins."""
    if not agent.shares or agent.permissions is not Permissions.READ:
        return None
    runs = sorted(store.live_runs(project=agent.project), key=lambda run: run.starting_at)
    others = (store.find(Agent, run.agent) for run in reversed(runs) if run.agent != agent.id)
    there = (other for other in others if other and other.instance == agent.instance)
    return next((each for each in there if each.shares and each.permissions is not Permissions.READ), None)


def joins(store: Reading, agent: Agent, task: Task | None) -> bool:
    """Whether what an agent does now is its part in a workflow: not the mending of what is to land, nor what it was
    called to when that was over."""
    instance = of_agent(store, agent)
    if instance is None or task is None or not instance.live or agent.id not in instance.agents:
        return False
    return not store.changes_of_task(task.id) and task.created_at >= instance.started_at


def advance(store: Writing, agent: Agent, head: str) -> None:
    """Within a transaction: what an agent has committed is the instance's now."""
    instance = of_agent(store, agent)
    if instance is not None and instance.live:
        after = instance.advanced(agent, head)
        if after != instance:
            store.record("instance.advanced", after.channel, after)


def is_dismissed(store: Reading, agent: Agent) -> bool:
    """Whether what an agent took part in is over."""
    instance = of_agent(store, agent)
    return instance is not None and not instance.live and agent.id in instance.agents


def holds(store: Reading, agent: Agent) -> bool:
    """Whether an agent has commits of a workflow that nobody has brought to main."""
    instance = of_agent(store, agent)
    return instance is not None and agent.id in instance.heads


def turn_of(store: Reading, agent: Agent, items: Sequence[MailItem] = ()) -> str:
    """Whom of its instance an agent has to wait for: one that shares its worktree, or one too many at once."""
    instance = of_agent(store, agent)
    if instance is None:
        return ""
    runs = store.live_runs(project=agent.project)
    live = sorted(run.agent for run in runs if run.agent in instance.agents and run.agent != agent.id)
    if "runs" in instance.limits and len(live) >= instance.limits["runs"]:
        lent = lenders(store, agent)
        if sum(each not in lent for each in live) >= instance.limits["runs"]:
            return live[0]
    busy = {task.agent for task in store.unfinished_tasks(project=agent.project) if begins(task)} | {*live}
    found = (store.find(Agent, each) for each in sorted(busy))
    asks = [item.message.sender for item in items if item.message.kind is Kind.ASK]
    return decide_turn(agent, [each for each in found if each], asks)


def check_words(store: Reading, agent: Agent, to: Sequence[str]) -> None:
    """Refuse to let one speak to others that was given no context."""
    if not agent.talks and any(each != str(HUMAN) for each in to):
        what = f"{agent.id} has no context, so it can't speak to other agents."
        raise NotAllowed(what, hint=_remedy(of_agent(store, agent), "channel"))


def check_pages(store: Reading, agent: Agent) -> None:
    """Refuse shared documents to one that was not given any."""
    instance = of_agent(store, agent)
    if "document" not in instance.files if instance else not agent.talks:
        raise NotAllowed(f"{agent.id} shares no document with others.", hint=_remedy(instance, "document"))


def _remedy(instance: Instance | None, what: str) -> str:
    return (
        f"Write `context: {{{what}: }}` into {instance.source}." if instance else "`windlass new --context` gives one."
    )
