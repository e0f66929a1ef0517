"""Workflows: a file becomes an instance, its agents begin with the kickoff, and it ends when all is quiet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from windlass.core import policy
from windlass.core.address import HUMAN, RESERVED, check_name
from windlass.core.agent import Agent, Permissions
from windlass.core.change import Change, ChangeState
from windlass.core.definition import Definition, is_home
from windlass.core.errors import BadInput, Conflict, NotFound
from windlass.core.instance import DEFAULT, Facts, Instance, Motion, motion_of
from windlass.core.mentions import mentions
from windlass.core.message import Message
from windlass.core.ports import Ports
from windlass.core.project import Project
from windlass.core.run import Outcome
from windlass.core.store import Reading, Writing
from windlass.core.task import Task, TaskState, title_of
from windlass.core.template import Template
from windlass.core.workflow import Member, Tool, Workflow, WorkflowLimits, Workplace
from windlass.engine import instances
from windlass.engine.bell import Bell
from windlass.engine.deliver import Deliver, mail_of
from windlass.engine.endings import hush
from windlass.engine.say import open_questions, put
from windlass.engine.tasks import Tasks

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
class Situation:
    """An instance as it is now."""

    instance: Instance
    motion: Motion
    failed: tuple[str, ...] = ()
    """Agents whose last run did not end well."""
    waiting: tuple[str, ...] = ()
    """What it waits for, in words."""
    changes: tuple[Change, ...] = ()


class Workflows:
    """Starts, watches and ends instances."""

    def __init__(self, ports: Ports, bell: Bell, tasks: Tasks, deliver: Deliver) -> None:
        self.store = ports.store
        self.clock = ports.clock
        self.git = ports.git
        self.library = ports.library
        self.bell = bell
        self.tasks = tasks
        self.projects = tasks.projects
        self.deliver = deliver
        self.runs = deliver.runs
        self.troubles = deliver.troubles

    # ── starting ──

    async def begin(self, start: Start) -> Instance:
        """All of it, or a refusal before anything is there."""
        project = await self.projects.at(start.path)
        workflow = await self.library.workflow(start.file)
        name = await self.store.read(partial(_free_name, start.instance, project, workflow))
        agents = [await self._engaged(project, workflow, each, name) for each in workflow.agents]
        await self.git.main(project)
        values = {**start.values, **workflow.values(name)}
        beginning = _Beginning(
            project=project,
            workflow=workflow,
            agents=tuple(agents),
            values=values,
            instance=Instance(
                name=name,
                project=project.id,
                workflow=workflow.name,
                source=workflow.file,
                agents=tuple(each.id for each in agents),
                stays=start.stays,
                gate=workflow.gate,
                limits=_limits(workflow.limits),
                deadline=self.clock.now() + workflow.limits.seconds if workflow.limits.seconds else None,
                handoffs={each.name: each.handoff_to for each in workflow.agents if each.handoff_to},
                triggers={f"{each.name}@{name}": each.triggers for each in workflow.agents if each.triggers},
                started_at=self.clock.now(),
            ),
        )
        begun = await self.store.write(beginning.make)
        self.bell.ring()
        return begun

    async def _engaged(self, project: Project, workflow: Workflow, member: Member, instance: str) -> Agent:
        """One of its agents, on the terms of the file."""
        permissions = _permissions(member)
        if member.worktree is Workplace.PROJECT:
            raise BadInput(
                f"{member.name} can't work in your own checkout yet.", hint="Write `worktree: shared`, or `own`."
            )
        defined = Definition(
            name=member.name,
            role=member.role or f"{member.name} in the workflow {workflow.name}",
            file=workflow.file,
            body=member.system_prompt,
            provider=member.provider or ("command" if member.command else ""),
            model=member.model,
            permissions=permissions,
            persistent=member.persistent,
        )
        agent = self.tasks.terms(project, defined, {"command": member.command} if member.command else {})
        shares = member.worktree is Workplace.SHARED
        talks = workflow.context is not None and bool(workflow.context.channel)
        agent = replace(agent, instance=instance, workflow=workflow.name, shares=shares, talks=talks)
        await self.tasks.fences.check(agent, project)
        return agent

    # ── looking ──

    async def look(self, path: str, name: str) -> Situation:
        """What an instance of a project does now."""
        project = await self.projects.at(path)
        return await self.store.read(partial(self._situation, project.id, name, self.clock.now()))

    def _situation(self, project: str, name: str, now: float, store: Reading) -> Situation:
        instance = instances.find(store, project, name)
        if instance is None:
            known = sorted({each.channel for each in instances.every(store) if each.project == project})
            listed = f"There are: {', '.join(known)}." if known else "`windlass run FILE` starts one."
            raise NotFound(f"There is no instance {name} here.", hint=listed)
        facts = self._facts(instance, now, store)
        return Situation(
            instance=instance,
            motion=motion_of(facts),
            failed=tuple(_failed(instance, store)),
            waiting=(*_asked(facts, store), *facts.stuck),
            changes=tuple(each for task in instance.landing for each in store.changes_of_task(task)),
        )

    def _facts(self, instance: Instance, now: float, store: Reading) -> Facts:
        """All that can move it."""
        own = {*instance.agents}
        tasks = [each for each in store.unfinished_tasks() if each.agent in own or each.id in instance.landing]
        settled = {each.id for each in tasks if _is_settled(store, each)}
        waking, stuck = [], []
        for each in (each for each in store.readers_waiting() if each in own):
            mail = mail_of(store, each, store.undelivered(reader=each))
            match self.deliver.decide(mail, now) if mail else None:
                case policy.Wait(reason, None) if reason != policy.BUSY:
                    stuck.append(f"{each}: {reason}")
                case policy.Wake() | policy.Wait():
                    waking.append(each)
        return Facts(
            live=[each for each in store.live_runs() if each.agent in own],
            tasks=tasks,
            settled=frozenset(settled),
            waking=waking,
            stuck=stuck,
        )

    # ── ending ──

    async def stop(self, path: str, name: str, reason: str = "stopped by hand") -> list[str]:
        """End an instance, with all that its agents started. What was said and written stays."""
        return await self._stop((await self.look(path, name)).instance, reason)

    async def stop_all(self) -> list[str]:
        """End every instance of every project."""
        live = await self.store.read(instances.live)
        return [name for each in live for name in await self._stop(each, "stopped by hand")]

    async def _stop(self, instance: Instance, reason: str) -> list[str]:
        stopped = [each for each in instance.agents if await self.runs.stop(each, reason)]
        await self.store.write(partial(_end, instance.project, instance.name, reason, self.clock.now()))
        self.bell.ring()
        return stopped

    async def drain(self, path: str, name: str) -> None:
        """Let those who work end, and start nobody any more."""
        project = await self.projects.at(path)
        await self.store.write(partial(_drain, project.id, name, self.clock.now()))
        self.bell.ring()

    async def tick(self) -> bool:
        """What is quiet lands what it has made; then it ends, unless it was started to stay."""
        now = self.clock.now()
        for each in await self.store.read(instances.live):
            with self.troubles.noted("workflows"):
                if each.deadline is not None:
                    self.bell.ring_in(each.deadline - now)
                if each.deadline is not None and each.deadline <= now:
                    await self._stop(each, "its time was over (limits.timeout)")
                await self.store.write(partial(self._settle, each.project, each.name, self.clock.now()))
        return False

    def _settle(self, project: str, name: str, now: float, store: Writing) -> None:
        """Within a transaction, because everything may have begun to move since we looked."""
        instance = instances.find(store, project, name)
        if instance is None or not instance.live or motion_of(self._facts(instance, now, store)) is not Motion.QUIET:
            return
        if instance.heads and instance.gate:
            _submit(store, instance, now)
        elif (settled := _landed(store, instance)) != instance:
            instances.keep(store, settled, "instance.landed", now)
        elif not instance.stays or instance.draining:
            _end(project, name, "all is done", now, store)
        else:
            return
        self.bell.ring()


# ── within transactions ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class _Beginning:
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


def _free_name(wanted: str, project: Project, workflow: Workflow, store: Reading) -> str:
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


def _permissions(member: Member) -> Permissions:
    """What a list of tools comes to: whoever can neither edit nor run anything only reads."""
    if member.tools is None or {Tool.EDIT, Tool.SHELL} <= {*member.tools}:
        return member.permissions
    if {Tool.EDIT, Tool.SHELL}.isdisjoint(member.tools):
        return Permissions.READ
    raise BadInput(
        f"{member.name} can't be given {', '.join(member.tools)} alone.",
        hint="Give it edit and shell together, or neither of them.",
    )


def _limits(limits: WorkflowLimits) -> dict[str, int]:
    given = {"runs": limits.runs, "hops": limits.hops, "wakes": limits.wakes}
    return {name: value for name, value in given.items() if value is not None}


def _is_settled(store: Reading, task: Task) -> bool:
    """Whether a task waits for a person."""
    change = store.change_of_task(task.id)
    return policy.is_settled(task, change, asked=bool(open_questions(store, task.agent)) if task.agent else False)


def _asked(facts: Facts, store: Reading) -> list[str]:
    asked = (f"{each.agent} asks: {ask.body}" for each in facts.tasks for ask in open_questions(store, each.agent)[-1:])
    return [*dict.fromkeys(asked)]


def _failed(instance: Instance, store: Reading) -> list[str]:
    latest = store.latest_runs(list(instance.agents))
    bad = (Outcome.FAILED, Outcome.CRASHED)
    return [
        f"{key}: {run.reason}"
        for key, run in latest.items()
        if run.outcome in bad and run.starting_at >= instance.started_at
    ]


def _submit(store: Writing, instance: Instance, now: float) -> None:
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
            id=store.next_id(Change),
            project=instance.project,
            branch=agent.branch,
            head=head,
            title=task.title,
            agent=author,
            task=task.id,
            queued_at=now,
            turn=store.last_seq() + 1,
        )
        store.record("change.queued", change.id, task, change)
        tasks.append(task.id)
    instances.keep(store, instance.submitted(tasks), "instance.submitted", now)


def _landed(store: Reading, instance: Instance) -> Instance:
    """With its line back at main, where all of it has landed."""
    changes = [each for task in instance.landing for each in store.changes_of_task(task)]
    landed = {each.head for each in changes if each.state is ChangeState.LANDED}
    return replace(instance, line="") if instance.line in landed else instance


def _end(project: str, name: str, reason: str, now: float, store: Writing) -> None:
    """It is over: whoever worked in it is retired when its worktree is saved."""
    instance = instances.find(store, project, name)
    if instance is None or not instance.live:
        return
    for each in instance.agents:
        hush(store, each, f"its instance is over: {reason}")
        agent = store.find(Agent, each)
        if agent is not None and agent.retired_at is None and store.task_of(each) is None:  # it never began
            store.record("agent.retired", each, replace(agent, retired_at=now), rescue="", rescues={}, kept="")
    instances.keep(store, replace(instance, ended_at=now, reason=reason), "instance.ended", now)


def _drain(project: str, name: str, now: float, store: Writing) -> None:
    instance = instances.find(store, project, name)
    if instance is None or not instance.live:
        raise Conflict(f"The instance {name} is not running.")
    for each in instance.agents:
        hush(store, each, "its instance is ending")
    instances.keep(store, replace(instance, draining=True), "instance.draining", now)
