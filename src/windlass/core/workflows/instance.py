"""An instance: one start of a workflow, with its agents and the state of their common work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from windlass.core.address import HUMAN
from windlass.core.nouns.agent import Agent, Permissions
from windlass.core.nouns.message import MailItem
from windlass.core.nouns.run import Run
from windlass.core.nouns.task import Task, TaskState
from windlass.core.settings.schema import Limits

DEFAULT_INSTANCE = "default"
"""The name of an instance if the person gives none."""


class InstanceEnding(StrEnum):
    """How an instance ended."""

    DONE = "done"
    """Nothing was left to do."""
    DRAINED = "drained"
    """The running agents ended, and no agent was started any more."""
    STOPPED = "stopped"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One start of a workflow. Its channel is `@name`."""

    name: str
    project: str
    workflow: str
    source: str
    agents: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    """Paths of its channel and its document from the top of the project; nothing: they are not shared."""
    kickoff: str = ""
    after: int = 0
    """The number of the last message in its channel before the start."""
    stays: bool = False
    """Whether the instance waits for more when it is quiet."""
    gate: bool = True
    """Whether the agents' commits become a change when the instance is quiet."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """Limits that the instance lowers, by the names of the settings."""
    deadline: float | None = None
    """When the instance is stopped in any case."""
    handoffs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """To whom an agent may hand its work, by the agent's name, if the file limits it."""
    triggers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Words that call an agent, by its id."""
    draining: bool = False
    """Whether no agent is started any more."""
    line: str = ""
    """The last commit of the agents that share a worktree; nothing: main."""
    began: Mapping[str, str] = field(default_factory=dict)
    """The commit at which each agent last began."""
    heads: Mapping[str, str] = field(default_factory=dict)
    """Commits that are not in the queue yet, by author; without commits that another agent has built on."""
    landing: tuple[str, ...] = ()
    """The tasks that bring the commits to main."""
    started_at: float = 0.0
    ended_at: float | None = None
    ending: InstanceEnding | None = None
    reason: str = ""

    @property
    def id(self) -> str:
        return f"{self.project}/{self.name}"

    @property
    def channel(self) -> str:
        return f"@{self.name}"

    @property
    def live(self) -> bool:
        return self.ended_at is None

    def admits(self, agent: str, items: Iterable[MailItem], task: Task | None) -> bool:
        """Whether one of its agents may be started: none while it drains.

        After the end, an agent is started only for a newer task, or for a newer message of a person.
        """
        if self.ended_at is None or agent not in self.agents:
            return not self.draining or agent not in self.agents
        if task is not None and task.created_at > self.ended_at:
            return True
        said = (item.message for item in items if item.calls)
        return any(message.sender == str(HUMAN) and message.sent_at > self.ended_at for message in said)

    def start_of(self, agent: Agent) -> str:
        """The commit at which an agent begins; nothing: at main."""
        return self.line if agent.shares else self.heads.get(agent.id, "")

    def entered(self, agent: Agent) -> Instance:
        """The instance with the commit at which an agent begins now."""
        return replace(self, began={**self.began, agent.id: self.start_of(agent)})

    def advanced(self, agent: Agent, head: str) -> Instance:
        """The instance with an agent's new commit. One that shares moves the line, unless another has meanwhile."""
        start = self.began.get(agent.id, "")
        if agent.permissions is Permissions.READ or not head or head == start:
            return self
        carries = agent.shares and start == self.line
        heads = {author: known for author, known in self.heads.items() if not (carries and known == start)}
        heads[agent.id] = head
        return replace(self, heads=heads, line=head if carries else self.line)

    def submitted(self, tasks: Iterable[str]) -> Instance:
        """The instance with all its commits in the queue."""
        return replace(self, heads={}, landing=(*self.landing, *tasks))


def lowered(limits: Limits, own: Mapping[str, int]) -> Limits:
    """A project's limits with an instance's own, which only lower them; 0 in the project's means no limit."""
    return replace(limits, **{name: min(getattr(limits, name) or value, value) for name, value in own.items()})


def decide_turn(agent: Agent, at_work: Iterable[Agent], askers: Iterable[str]) -> str:
    """The agent that another has to wait for because they share a worktree; "" if it only reads, or no one is there.

    `at_work` are agents with a run or a task under way; nobody waits for `askers`, who wait for the agent's answer.
    """
    if not agent.shares or agent.permissions is Permissions.READ:
        return ""
    passed = {agent.id, *askers}
    others = (other for other in at_work if other.shares and other.permissions is not Permissions.READ)
    there = (other for other in others if (other.project, other.instance) == (agent.project, agent.instance))
    return next((other.id for other in there if other.id not in passed), "")


class Motion(StrEnum):
    """Whether an instance goes on by itself."""

    MOVING = "moving"
    """An agent is at work, or will be."""
    WAITING = "waiting"
    """Nothing happens without a person."""
    QUIET = "quiet"
    """Nothing is left to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts that decide whether an instance moves."""

    live: Sequence[Run] = ()
    """Its agents' runs that are not over."""
    tasks: Sequence[Task] = ()
    """Its agents' tasks that have not ended."""
    settled: frozenset[str] = frozenset()
    """Ids of tasks that wait for a person, or for a task that does."""
    waking: Sequence[str] = ()
    """Agents that have mail and will be started for it, now or later."""
    stuck: Sequence[str] = ()
    """Why other mail waits, in words."""


def motion_of(facts: Facts) -> Motion:
    """Whether anything moves, or could."""
    under_way = [task for task in facts.tasks if task.id not in facts.settled]
    if facts.live or facts.waking or under_way:
        return Motion.MOVING
    return Motion.WAITING if facts.tasks or facts.stuck else Motion.QUIET


def begins(task: Task) -> bool:
    """Whether an agent works on a task. A task that lands keeps no one from going on."""
    return task.state in (TaskState.ACTIVE, TaskState.WAITING)
