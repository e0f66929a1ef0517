"""An instance: one start of a workflow. Its agents, how far their common work has got, and whether anything moves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from windlass.core.address import HUMAN
from windlass.core.nouns.agent import Agent, Permissions
from windlass.core.nouns.message import Letter
from windlass.core.nouns.run import Run
from windlass.core.nouns.task import Task, TaskState
from windlass.core.settings.schema import Limits

DEFAULT = "default"
"""What an instance is called that nobody has named."""


class InstanceEnding(StrEnum):
    """How an instance ended."""

    DONE = "done"
    """Nothing was left to do."""
    DRAINED = "drained"
    """Those at work ended, and nobody was started any more."""
    STOPPED = "stopped"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One start of a workflow. Its channel is `@name`."""

    name: str
    project: str
    workflow: str
    """What its file calls it."""
    source: str
    """The file that it was started from."""
    agents: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    """Where its channel and its document are shown, seen from the top of the project; nothing: they are not shared."""
    kickoff: str = ""
    """The message that began it."""
    after: int = 0
    """The number of the last message that was in its channel before."""
    stays: bool = False
    """Whether it waits for more when all is quiet."""
    gate: bool = True
    """Whether what its agents committed becomes a change when all is quiet."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """What it lowers, by the names of the settings."""
    deadline: float | None = None
    """When it is stopped, whatever it does."""
    handoffs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """To whom an agent may hand its work, by its name, for those whom the file limits."""
    triggers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Words that call an agent, by its id."""
    draining: bool = False
    """Whether nobody is started any more."""
    line: str = ""
    """The last commit of those who share a worktree; nothing: they stand at main."""
    began: Mapping[str, str] = field(default_factory=dict)
    """Where the line was when each agent last began something."""
    heads: Mapping[str, str] = field(default_factory=dict)
    """What was committed and is not in the queue yet, by its last author; what others have built on is not here."""
    landing: tuple[str, ...] = ()
    """The tasks that bring it to main."""
    started_at: float = 0.0
    ended_at: float | None = None
    ending: InstanceEnding | None = None
    reason: str = ""
    """Why it ended, in words."""

    @property
    def key(self) -> str:
        """The document that keeps it."""
        return document_of(self.project, self.name)

    @property
    def channel(self) -> str:
        return f"@{self.name}"

    @property
    def live(self) -> bool:
        return self.ended_at is None

    def admits(self, agent: str, letters: Iterable[Letter], task: Task | None) -> bool:
        """Whether one of its agents may be started: nobody while it drains; when it is over, for what came since.

        That is what a person says to it, and what it was given or called to after the end.
        """
        if self.ended_at is None or agent not in self.agents:
            return not self.draining or agent not in self.agents
        if task is not None and task.created_at > self.ended_at:
            return True
        said = (letter.message for letter in letters if letter.calls)
        return any(each.sender == str(HUMAN) and each.sent_at > self.ended_at for each in said)

    def start_of(self, agent: Agent) -> str:
        """The commit at which an agent begins; nothing: at main."""
        return self.line if agent.shares else self.heads.get(agent.id, "")

    def entered(self, agent: Agent) -> Instance:
        """With where an agent begins now."""
        return replace(self, began={**self.began, agent.id: self.start_of(agent)})

    def advanced(self, agent: Agent, head: str) -> Instance:
        """With what an agent has committed. Who shares carries the line on, unless another has meanwhile."""
        start = self.began.get(agent.id, "")
        if agent.permissions is Permissions.READ or not head or head == start:
            return self
        carries = agent.shares and start == self.line
        built_on = {each for each, known in self.heads.items() if carries and known == start}
        heads = {each: known for each, known in self.heads.items() if each not in built_on} | {agent.id: head}
        return replace(self, heads=heads, line=head if carries else self.line)

    def submitted(self, tasks: Iterable[str]) -> Instance:
        """With all that was committed put into the queue."""
        return replace(self, heads={}, landing=(*self.landing, *tasks))


NAMES = "system/instance/"
"""What the names of the documents begin with that keep instances."""


def document_of(project: str, name: str) -> str:
    return f"{project}/{NAMES}{name}"


def lowered(limits: Limits, own: Mapping[str, int]) -> Limits:
    """A project's limits with an instance's own, which only lower them; 0 is no limit there."""
    known = {name: getattr(limits, name) for name in own}
    return replace(limits, **{name: min(known[name] or value, value) for name, value in own.items()})


# ── taking turns ─────────────────────────────────────────────────────────────────────────────────────────────


def decide_turn(agent: Agent, at_work: Iterable[Agent], askers: Iterable[str]) -> str:
    """Whom an agent has to wait for, because they share a worktree: nobody, if it only reads, or is asked by that one.

    `at_work` are agents with a run or a task under way, `askers` those who wait for its answer.
    """
    if not agent.shares or agent.permissions is Permissions.READ:
        return ""
    waits = {*askers}
    others = (each for each in at_work if each.shares and each.permissions is not Permissions.READ)
    there = (other for other in others if (other.project, other.instance) == (agent.project, agent.instance))
    return next((each.id for each in there if each.id != agent.id and each.id not in waits), "")


# ── quiet ────────────────────────────────────────────────────────────────────────────────────────────────────


class Motion(StrEnum):
    """What becomes of an instance by itself."""

    MOVING = "moving"
    """Somebody is at work, or will be."""
    WAITING = "waiting"
    """Nothing happens without a person."""
    QUIET = "quiet"
    """Nothing is left to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that can move an instance."""

    live: Sequence[Run] = ()
    """Its agents' runs that are not over."""
    tasks: Sequence[Task] = ()
    """Its agents' tasks that have not ended."""
    settled: frozenset[str] = frozenset()
    """Of these, the ones that wait: for a person, or for one that does."""
    waking: Sequence[str] = ()
    """Agents who have mail and will be started for it, now or later."""
    stuck: Sequence[str] = ()
    """Why other mail waits, in words."""


def motion_of(facts: Facts) -> Motion:
    """Whether anything moves, or could."""
    under_way = [task for task in facts.tasks if task.id not in facts.settled]
    if facts.live or facts.waking or under_way:
        return Motion.MOVING
    return Motion.WAITING if facts.tasks or facts.stuck else Motion.QUIET


def begins(task: Task) -> bool:
    """Whether somebody is at it. What is landing keeps nobody from going on."""
    return task.state in (TaskState.ACTIVE, TaskState.WAITING)
