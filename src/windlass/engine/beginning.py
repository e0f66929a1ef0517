"""The beginning of an instance: one transaction makes its agents, its tasks and its kickoff, or nothing at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from windlass.core.address import HUMAN, RESERVED, check_name
from windlass.core.agent import Agent, Permissions
from windlass.core.definition import is_home
from windlass.core.errors import BadInput, Conflict
from windlass.core.instance import DEFAULT, Instance
from windlass.core.mentions import mentions
from windlass.core.message import Message
from windlass.core.project import Project
from windlass.core.store import Reading, Writing
from windlass.core.task import Task
from windlass.core.template import Template
from windlass.core.workflow import Member, Tool, Workflow, WorkflowLimits
from windlass.engine import instances
from windlass.engine.endings import hush
from windlass.engine.say import put

LONGEST_VALUE = 100_000
"""Characters of a value that a message carries; the rest is in a document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a person wants to begin."""

    path: str
    """A folder of the project."""
    file: str
    """The workflow's file."""
    instance: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    """What `${{ … }}` stands for, as far as only the one who starts it knows: parameters, variables, setup."""
    stays: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """A start, as one transaction: its agents, its tasks, its kickoff."""

    project: Project
    workflow: Workflow
    agents: tuple[Agent, ...]
    values: Mapping[str, str]
    instance: Instance

    def make(self, store: Writing) -> Instance:
        self._refuse_second(store)
        for agent in self.agents:
            known = store.find(Agent, agent.id)
            if known is not None and known.project != self.project.id:
                raise Conflict(f"{agent.id} is an agent of another project.", hint="Choose another --instance.")
            if known is not None:
                hush(store, agent.id, "its instance was started anew")
            store.record("agent.added", agent.id, agent)
        kickoff = self._kickoff(store)
        self._tasks(store)
        instance = replace(self.instance, kickoff=kickoff)
        return instances.keep(store, instance, "instance.started", self.instance.started_at)

    def _refuse_second(self, store: Reading) -> None:
        known = instances.find(store, self.project.id, self.instance.name)
        if known is not None and known.live:
            raise Conflict(
                f"The instance {known.name} is running already: {known.workflow}, from {known.source}.",
                hint=f"Run `windlass stop @{known.name}` first, or give this one another --instance.",
            )

    def _kickoff(self, store: Writing) -> str:
        template, names = self.workflow.kickoff, {each.name: each.id for each in self.agents}
        if not template.pieces:
            return ""
        spoken = mentions(template.spoken, names)
        if not spoken.addressed:
            raise BadInput(
                f"{self.workflow.file}: the kickoff mentions nobody, so nobody would begin.",
                hint=f"Write @{self.agents[0].name} into it.",
            )
        message = Message(
            id=store.next_id(Message),
            channel=self.instance.channel,
            sender=str(HUMAN),
            to=tuple(names[each] for each in spoken.all),
            body=rendered(template, self.values),
            sent_at=self.instance.started_at,
            project=self.project.id,
        )
        quiet = {names[each] for each in spoken.all if each not in spoken.addressed}
        return put(store, message, quiet=quiet).id

    def _tasks(self, store: Writing) -> None:
        ids: dict[str, str] = {}
        agents = {each.name: each.id for each in self.agents}
        for each in self.workflow.tasks:
            task = Task(
                id=store.next_id(Task),
                project=self.project.id,
                title=each.title,
                brief=rendered(each.brief, self.values),
                needs=tuple(ids[need] for need in each.needs),
                agent=agents[each.agent],
                created_at=self.instance.started_at,
            )
            ids[each.name] = task.id
            store.record("task.added", task.id, task)


def rendered(template: Template, values: Mapping[str, str]) -> str:
    """A text with its values, each as it is."""
    missing = sorted({each.name for each in template.references if each.name not in values})
    if missing:
        raise BadInput(f"Nothing was given for {', '.join(missing)}.", hint="Values are given by whoever starts it.")
    return template.render(values)


def free_name(wanted: str, project: Project, workflow: Workflow, store: Reading) -> str:
    """The instance's name: the one that was typed, or the default, which each project has its own of."""
    if wanted:
        if check_name(wanted) in RESERVED or is_home(wanted, project.name):
            raise BadInput(f"An instance can't be called {wanted} here.", hint="Choose another --instance.")
        return wanted
    number, name = 1, DEFAULT
    while any(_is_of_another(store, f"{each.name}@{name}", project) for each in workflow.agents):
        number += 1
        name = f"{DEFAULT}-{number}"
    return name


def _is_of_another(store: Reading, agent: str, project: Project) -> bool:
    found = store.find(Agent, agent)
    return found is not None and found.project != project.id


def permissions_of(member: Member) -> Permissions:
    """What a list of tools comes to: whoever can neither edit nor run anything only reads."""
    if member.tools is None or {Tool.EDIT, Tool.SHELL} <= {*member.tools}:
        return member.permissions
    if {Tool.EDIT, Tool.SHELL}.isdisjoint(member.tools):
        return Permissions.READ
    raise BadInput(
        f"{member.name} can't be given {', '.join(member.tools)} alone.",
        hint="Give it edit and shell together, or neither of them.",
    )


def limits_of(limits: WorkflowLimits) -> dict[str, int]:
    given = {"runs": limits.runs, "hops": limits.hops, "wakes": limits.wakes}
    return {name: value for name, value in given.items() if value is not None}
