"""Workflows: a file becomes an instance, its agents begin with the kickoff, and it ends when all is quiet."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace
from functools import partial

from windlass.core import policy
from windlass.core.agents.definition import Definition
from windlass.core.errors import BadInput, Conflict, NotFound
from windlass.core.nouns.agent import Agent, Permissions
from windlass.core.nouns.change import Change, ChangeState
from windlass.core.nouns.message import Message
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Outcome
from windlass.core.nouns.task import Task, TaskState, title_of
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading, Writing
from windlass.core.runs.provider import check_tools
from windlass.core.workflows.instance import Facts, Instance, InstanceEnding, Motion, begins, motion_of
from windlass.core.workflows.workflow import Member, Workflow, WorktreeChoice
from windlass.engine.bell import Bell
from windlass.engine.gate.changes import Changes
from windlass.engine.projects.tasks import Tasks
from windlass.engine.records import instances
from windlass.engine.records.changes import queue_change
from windlass.engine.records.closing import end_task, hush
from windlass.engine.records.messages import open_questions
from windlass.engine.waking.deliver import Deliver, mail_of
from windlass.engine.workflows.start import Beginning, WorkflowStart, free_name, limits_of, permissions_of


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

    def __init__(self, ports: Ports, bell: Bell, tasks: Tasks, deliver: Deliver, changes: Changes) -> None:
        self.store = ports.store
        self.clock = ports.clock
        self.git = ports.git
        self.library = ports.library
        self.providers = ports.providers
        self.chats = ports.chats
        self.bell = bell
        self.tasks = tasks
        self.projects = tasks.projects
        self.changes = changes
        self.deliver = deliver
        self.runs = deliver.runs
        self.troubles = deliver.troubles

    # ── starting ──

    async def check(self, start: WorkflowStart) -> Instance:
        """What would begin. Raises whatever stands in its way, before its setup is run; values may be missing."""
        beginning = await self._beginning(start)
        await self.store.read(beginning.refuse)
        return beginning.instance

    async def begin(self, start: WorkflowStart) -> Instance:
        """All of it, or a refusal before anything is there."""
        beginning = await self._beginning(start)
        begun = await self.store.write(beginning.make)
        self.bell.ring()
        return begun

    async def _beginning(self, start: WorkflowStart) -> Beginning:
        project = await self.projects.at(start.path)
        workflow = await self.library.workflow(start.file)
        name = await self.store.read(partial(free_name, start.instance, project, workflow))
        agents = [await self._engaged(project, workflow, agent, name) for agent in workflow.agents]
        await self.git.main(project)
        values = {**start.values, **workflow.values(name)}
        return Beginning(
            project=project,
            workflow=workflow,
            agents=tuple(agents),
            values=values,
            instance=Instance(
                name=name,
                project=project.id,
                workflow=workflow.name,
                source=workflow.file,
                agents=tuple(agent.id for agent in agents),
                files=await self._files(project, workflow, name),
                stays=start.stays,
                gate=workflow.gate,
                limits=limits_of(workflow.limits),
                deadline=self.clock.now() + workflow.limits.seconds if workflow.limits.seconds else None,
                handoffs={agent.name: agent.handoff_to for agent in workflow.agents if agent.handoff_to},
                triggers={f"{agent.name}@{name}": agent.triggers for agent in workflow.agents if agent.triggers},
                started_at=self.clock.now(),
            ),
        )

    async def _files(self, project: Project, workflow: Workflow, name: str) -> dict[str, str]:
        """Where its channel and its document are shown. What stands there, and is not ours, is not overwritten."""
        values = workflow.values(name)
        files = {each: values[f"context.{each}"] for each in ("channel", "document") if f"context.{each}" in values}
        known = await self.store.read(lambda store: instances.of_project(store, project.id))
        channel = files.get("channel", "")
        ours = {each.files.get("channel") for each in known} | {f".windlass/context/{name}/channel.md"}
        if channel and channel not in ours and self.chats.look(project.path, channel, 0, 0) is not None:
            raise Conflict(
                f"{channel} is there already, and is not a channel of ours.",
                hint="Move it away, or write another `file` for the channel of its context.",
            )
        return files

    async def _engaged(self, project: Project, workflow: Workflow, member: Member, instance: str) -> Agent:
        """One of its agents, on the terms of the file."""
        permissions = permissions_of(member)
        copies = member.worktree is WorktreeChoice.PROJECT
        if copies and permissions is not Permissions.READ:
            raise BadInput(
                f"{member.name} may not write in your own checkout: that would get past the gate.",
                hint="Write `permissions: read`, or `worktree: shared`.",
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
        if member.tools is not None:
            check_tools(self.providers.get(agent.provider), member.tools, permissions)
        shares = member.worktree is WorktreeChoice.SHARED
        talks = workflow.context is not None and bool(workflow.context.channel)
        agent = replace(
            agent,
            instance=instance,
            workflow=workflow.name,
            shares=shares,
            talks=talks,
            copies=copies,
            tools=member.tools,
        )
        await self.tasks.confinement.check(agent, project)
        return agent

    # ── looking ──

    async def every(self, path: str) -> list[Instance]:
        """Those of a project that have not ended."""
        project = await self.projects.known_at(path)
        found = await self.store.read(lambda store: instances.of_project(store, project.id)) if project else []
        return [each for each in found if each.live]

    async def look(self, path: str, name: str) -> Situation:
        """What an instance of a project does now."""
        project = await self.projects.known_at(path)
        key = project.id if project else ""
        return await self.store.read(partial(self._situation, key, name, self.clock.now()))

    async def again(self, instance: Instance) -> Situation:
        """What an instance does by now; git is not asked where it is."""
        return await self.store.read(partial(self._situation, instance.project, instance.name, self.clock.now()))

    def _situation(self, project: str, name: str, now: float, store: Reading) -> Situation:
        instance = instances.find(store, project, name)
        if instance is None:
            known = sorted({each.channel for each in instances.every(store) if each.project == project})
            listed = f"There are: {', '.join(known)}." if known else "`windlass run FILE` starts one."
            raise NotFound(f"There is no instance {name} here.", hint=listed)
        facts = self._facts(instance, now, store)
        changes = [each for task in instance.landing for each in store.changes_of_task(task)]
        held = [f"{change.id} is held: {change.reason}" for change in changes if change.state is ChangeState.HELD]
        return Situation(
            instance=instance,
            motion=motion_of(facts),
            failed=tuple(_failed(instance, store)),
            waiting=(*(_asked(facts, store) or held), *facts.stuck),
            changes=tuple(changes),
        )

    def _facts(self, instance: Instance, now: float, store: Reading) -> Facts:
        """All that can move it."""
        own = {*instance.agents}
        live = [run for run in store.live_runs(project=instance.project) if run.agent in own]
        unfinished = store.unfinished_tasks(project=instance.project)
        tasks = [task for task in unfinished if task.agent in own or task.id in instance.landing]
        settled = {task.id for task in tasks if _is_settled(store, task)}
        moving = {each.agent for each in live} | {
            task.agent for task in tasks if begins(task) and task.id not in settled
        }
        settled |= {task.id for task in tasks if task.state is TaskState.OPEN and _is_blocked(store, task, moving)}
        waking, stuck = list[str](), list[str]()
        for each in (each for each in store.readers_waiting() if each in own and not instance.draining):
            mail = mail_of(store, each, store.undelivered(reader=each))
            match self.deliver.decide(mail, now) if mail else None:
                case policy.Wait(policy.BUSY) | policy.Wake():
                    waking.append(each)
                case policy.Wait(reason, until):
                    waits = until is None or (mail and mail.turn and mail.turn not in moving)
                    (stuck if waits else waking).append(f"{each}: {reason}")
        return Facts(
            live=live,
            tasks=tasks,
            settled=frozenset(settled),
            waking=waking,
            stuck=stuck,
        )

    # ── ending ──

    async def stop(self, path: str, name: str, reason: str = "stopped by hand") -> list[str]:
        """End an instance, with all that its agents started. What was said and written stays; nothing more lands."""
        return await self._stop((await self.look(path, name)).instance, reason)

    async def stop_all(self) -> list[str]:
        """End every instance of every project."""
        live = await self.store.read(instances.live)
        return [name for each in live for name in await self._stop(each, "stopped by hand")]

    async def _stop(
        self, instance: Instance, reason: str, ending: InstanceEnding = InstanceEnding.STOPPED
    ) -> list[str]:
        stopped = [agent for agent in instance.agents if await self.runs.stop(agent, reason)]
        await self.store.write(partial(_end, instance, ending, reason, self.clock.now()))
        await self._give_up()
        self.bell.ring()
        return stopped

    async def _give_up(self) -> None:
        """What those who were stopped wanted to land does not land any more."""
        for each in await self.store.read(_unsettled):
            await self.changes.give_up(each.landing, each.reason)

    async def drain(self, path: str, name: str) -> None:
        """Let those who work end, and start nobody any more."""
        project = await self.projects.at(path)
        await self.store.write(partial(_drain, project.id, name, self.clock.now()))
        self.bell.ring()

    async def tick(self) -> bool:
        """What is quiet lands what it has made; then it ends, unless it was started to stay."""
        now = self.clock.now()
        with self.troubles.noted("workflows"):
            await self._give_up()
        for each in await self.store.read(instances.live):
            with self.troubles.noted("workflows"):
                if each.deadline is not None:
                    self.bell.ring_in(each.deadline - now)
                if each.deadline is not None and each.deadline <= now:
                    await self._stop(each, "its time was over (limits.timeout)", InstanceEnding.TIMEOUT)
                if await self.store.write(partial(self._settle, each.project, each.name, self.clock.now())):
                    self.bell.ring()
        return False

    def _settle(self, project: str, name: str, now: float, store: Writing) -> bool:
        """Within a transaction, because everything may have begun to move since we looked. Whether anything changed."""
        instance = instances.find(store, project, name)
        if instance is None or not instance.live:
            return False
        let_go = _let_go(store, instance, now)
        if motion_of(self._facts(instance, now, store)) is not Motion.QUIET:
            return let_go
        if instance.heads and instance.gate:
            _submit(store, instance, now)
        elif (settled := _landed(store, instance)) != instance:
            instances.keep(store, settled, "instance.landed", now)
        elif instance.draining:
            _end(instance, InstanceEnding.DRAINED, "those at work have ended, and nobody else was started", now, store)
        elif not instance.stays:
            _end(instance, InstanceEnding.DONE, "all is done", now, store)
        else:
            return False
        return True


# ── within transactions ──────────────────────────────────────────────────────────────────────────────────────


def _let_go(store: Writing, instance: Instance, now: float) -> bool:
    """End what nobody will begin or go on with: what needs something that failed, and all that is not at work while the
    instance drains. Whether there was any."""
    own = [task for task in store.unfinished_tasks(project=instance.project) if task.agent in instance.agents]
    live, before = {run.task for run in store.live_runs(project=instance.project)}, store.last_seq()
    for task in own:
        lost = next((need for need in _needs(store, task) if need.ended and need.state is not TaskState.DONE), None)
        if task.state is TaskState.OPEN and lost is not None:
            end_task(store, task, TaskState.FAILED, now=now, reason=f"it needs {lost.id}, which is {lost.state}")
        elif instance.draining and task.state is not TaskState.LANDING and task.id not in live:
            end_task(store, task, TaskState.CANCELLED, now=now, reason="its instance is ending")
    return store.last_seq() != before


def _unsettled(store: Reading) -> list[Instance]:
    """Those that were stopped with something on its way to main."""
    unfinished = {task.id for task in store.unfinished_tasks()}
    early = (InstanceEnding.STOPPED, InstanceEnding.TIMEOUT)
    stopped = [each for each in instances.every(store) if each.ending in early] if unfinished else []
    return [each for each in stopped if not unfinished.isdisjoint(each.landing)]


def _needs(store: Reading, task: Task) -> list[Task]:
    return [found for need in task.needs if (found := store.find(Task, need))]


def _is_blocked(store: Reading, task: Task, moving: Container[str]) -> bool:
    """Whether a task can't begin by itself: it needs another, or it is the turn of one that waits for a person."""
    agent = store.find(Agent, task.agent)
    turn = instances.turn_of(store, agent) if agent else ""
    return any(not need.ended for need in _needs(store, task)) or bool(turn and turn not in moving)


def _is_settled(store: Reading, task: Task) -> bool:
    """Whether a task waits for a person."""
    change = store.change_of_task(task.id)
    return policy.is_settled(task, change, asked=bool(open_questions(store, task.agent)) if task.agent else False)


def _asked(facts: Facts, store: Reading) -> list[str]:
    asked = (f"{task.agent} asks: {ask.body}" for task in facts.tasks for ask in open_questions(store, task.agent)[-1:])
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
    instances.keep(store, instance.submitted(tasks), "instance.submitted", now)


def _landed(store: Reading, instance: Instance) -> Instance:
    """With its line back at main, where all that wanted to land has landed, or is given up."""
    changes = [each for task in instance.landing for each in store.changes_of_task(task)]
    return replace(instance, line="") if changes and all(change.ended for change in changes) else instance


def _end(begun: Instance, ending: InstanceEnding, reason: str, now: float, store: Writing) -> None:
    """It is over: whoever worked in it is retired when its worktree is saved."""
    instance = instances.find(store, begun.project, begun.name)
    if instance is None or not instance.live:
        return
    for each in instance.agents:
        hush(store, each, f"its instance is over: {reason}")
        agent = store.find(Agent, each)
        if agent is not None and agent.retired_at is None and store.task_of(each) is None:  # it never began
            store.record("agent.retired", each, replace(agent, retired_at=now), rescue="", rescues={}, kept="")
    instances.keep(store, replace(instance, ended_at=now, ending=ending, reason=reason), "instance.ended", now)


def _drain(project: str, name: str, now: float, store: Writing) -> None:
    instance = instances.find(store, project, name)
    if instance is None or not instance.live:
        return  # it has ended by itself
    for agent in instance.agents:
        hush(store, agent, "its instance is ending")
    instances.keep(store, replace(instance, draining=True), "instance.draining", now)
