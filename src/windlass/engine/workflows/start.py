"""The beginning of an instance: one transaction makes its agents, its tasks and its kickoff, or nothing at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from windlass.core.address import HUMAN, own_name
from windlass.core.agents.definition import is_home
from windlass.core.errors import BadInput, Conflict
from windlass.core.files.template import Template
from windlass.core.messages.mentions import Mentions, mentions
from windlass.core.messages.new_message import LONGEST_BODY
from windlass.core.nouns.agent import Agent, Permissions, ToolKind
from windlass.core.nouns.message import Message
from windlass.core.nouns.project import Project
from windlass.core.nouns.task import Task, title_of
from windlass.core.ports.store import Reading, Writing
from windlass.core.workflows.instance import DEFAULT_INSTANCE, Instance
from windlass.core.workflows.workflow import Member, Workflow, WorkflowLimits
from windlass.engine.messages.documents import stored_name
from windlass.engine.messages.log import place
from windlass.engine.records.closing import hush
from windlass.engine.records.documents import revised
from windlass.engine.records.messages import put

LONGEST_VALUE = 100_000
"""Characters of a value that a message carries; the rest is in a document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowStart:
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
        self.refuse(store)
        for agent in self.agents:
            if store.find(Agent, agent.id) is not None:
                hush(store, agent.id, "its instance was started anew")
            store.record("agent.added", agent.id, agent)
        said = store.said(self.project.id, channel=self.instance.channel, limit=1)
        values = self._carried(store)
        kickoff = self._kickoff(store, values)
        self._tasks(store, values)
        instance = replace(self.instance, kickoff=kickoff, after=place(said[0].id) if said else 0)
        store.record("instance.started", instance.channel, instance)
        return instance

    def refuse(self, store: Reading) -> None:
        """Raise what stands in its way: itself, another with the same files, an agent of another project, silence."""
        known = store.find(Instance, self.instance.id)
        if known is not None and known.live:
            raise Conflict(
                f"The instance {known.name} is running already: {known.workflow}, from {known.source}.",
                hint=f"Run `windlass stop @{known.name}` first, or give this one another --instance.",
            )
        for other in store.instances(project=self.project.id, live=True):
            common = {*self.instance.files.values()} & {*other.files.values()}
            if common and other.name != self.instance.name:
                raise Conflict(
                    f"{min(common)} is a file of @{other.name}, which is running.",
                    hint="Write ${{ instance }} into `dir` of its context, or stop the other one first.",
                )
        for agent in self.agents:
            namesake = store.find(Agent, agent.id)
            if namesake is not None and (namesake.project != self.project.id or not namesake.workflow):
                whose = "of another project" if namesake.project != self.project.id else "there already"
                raise Conflict(f"{agent.id} is an agent {whose}.", hint="Choose another --instance.")
            latest = store.latest_runs([agent.id]).get(agent.id)
            if latest is not None and latest.live:
                raise Conflict(f"{agent.id} is still at work.", hint=f"Wait for it, or run `windlass stop {agent.id}`.")
        silent = self.workflow.kickoff.pieces and not self.workflow.tasks
        if silent and not self._spoken().addressed:
            raise BadInput(
                f"{self.workflow.file}: the kickoff mentions nobody, so nobody would begin.",
                hint=f"Write @{self.agents[0].name} into it.",
            )

    def _carried(self, store: Writing) -> Mapping[str, str]:
        """What messages carry of the values: of a long one its beginning, and all of it is a document."""
        if "document" not in self.instance.files:
            return self.values
        carried = dict(self.values)
        for name, value in self.values.items():
            if len(value) > LONGEST_VALUE:
                page = f"setup-{name}"
                self._keep(store, page, value)
                told = f"… ({len(value):,} characters: all of them are in the document {page})"
                carried[name] = f"{value[:LONGEST_VALUE]}\n{told}"
        return carried

    def _keep(self, store: Writing, page: str, text: str) -> None:
        name, now = stored_name(page, self.instance.name), self.instance.started_at
        after = revised(store, self.project.id, name, text, now=now, author=str(HUMAN))
        store.record("document.written", after.id, after)

    def _kickoff(self, store: Writing, values: Mapping[str, str]) -> str:
        template, names = self.workflow.kickoff, {agent.name: agent.id for agent in self.agents}
        if not template.pieces:
            return ""
        spoken = self._spoken()
        message = Message(
            id=store.next_id(Message),
            channel=self.instance.channel,
            sender=str(HUMAN),
            to=tuple(names[each] for each in spoken.all),
            body=_fitting("the kickoff", rendered(template, values)),
            sent_at=self.instance.started_at,
            project=self.project.id,
        )
        quiet = {names[each] for each in spoken.all if each not in spoken.addressed}
        return put(store, message, quiet=quiet).id

    def _spoken(self) -> Mentions:
        return mentions(self.workflow.kickoff.spoken, [agent.name for agent in self.agents])

    def _tasks(self, store: Writing, values: Mapping[str, str]) -> None:
        ids: dict[str, str] = {}
        agents = {agent.name: agent.id for agent in self.agents}
        for planned in self.workflow.tasks:
            brief = _fitting(f"the brief of {planned.name}", rendered(planned.brief, values))
            task = Task(
                id=store.next_id(Task),
                project=self.project.id,
                title=planned.title or title_of(brief),
                brief=brief,
                needs=tuple(ids[need] for need in planned.needs),
                agent=agents[planned.agent],
                created_at=self.instance.started_at,
            )
            ids[planned.name] = task.id
            store.record("task.added", task.id, task)


def rendered(template: Template, values: Mapping[str, str]) -> str:
    """A text with its values, each as it is."""
    missing = sorted({reference.name for reference in template.references if reference.name not in values})
    if missing:
        raise BadInput(f"Nothing was given for {', '.join(missing)}.", hint="Values are given by whoever starts it.")
    return template.render(values)


def _fitting(what: str, text: str) -> str:
    if len(text.encode("utf-8", "surrogatepass")) > LONGEST_BODY:
        raise BadInput(
            f"With its values, {what} has more than {LONGEST_BODY:,} bytes.",
            hint="With a shared document (`context:`), a long value is kept there, and only its beginning is sent.",
        )
    return text


def free_name(wanted: str, project: Project, workflow: Workflow, store: Reading) -> str:
    """The instance's name: the one that was typed, or the default, which each project has its own of."""
    if wanted:
        if own_name(wanted) and is_home(wanted, project.name):
            raise BadInput(f"An instance can't be called {wanted} here.", hint="Choose another --instance.")
        return wanted
    number, name = 1, DEFAULT_INSTANCE
    while any(
        (namesake := store.find(Agent, f"{agent.name}@{name}")) and namesake.project != project.id
        for agent in workflow.agents
    ):
        number += 1
        name = f"{DEFAULT_INSTANCE}-{number}"
    return name


def permissions_of(member: Member) -> Permissions:
    """What a list of tools comes to: whoever can neither edit nor run anything only reads."""
    if member.tools is not None and {ToolKind.EDIT, ToolKind.SHELL}.isdisjoint(member.tools):
        return Permissions.READ
    if member.tools is not None and ToolKind.SHELL not in member.tools:
        raise BadInput(
            f"{member.name} could not commit what it edits: it has no shell.",
            hint="Add shell to its `tools`, or take edit away.",
        )
    return member.permissions


def limits_of(limits: WorkflowLimits) -> dict[str, int]:
    given = {"runs": limits.runs, "hops": limits.hops, "wakes": limits.wakes}
    return {name: value for name, value in given.items() if value is not None}
