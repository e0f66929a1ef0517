"""Workflows: a file becomes an instance, its agents begin with the kickoff, and it ends when all is quiet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

from windlass.core import policy
from windlass.core.agents.definition import Definition
from windlass.core.errors import BadInput, Conflict, NotFound
from windlass.core.nouns.agent import Agent, Permissions
from windlass.core.nouns.change import Change, ChangeState
from windlass.core.nouns.project import Project
from windlass.core.nouns.task import TaskState
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading, Writing
from windlass.core.runs.provider import check_tools
from windlass.core.workflows.instance import Facts, Instance, InstanceEnding, Motion, begins, motion_of
from windlass.core.workflows.workflow import Member, Workflow, WorktreeChoice
from windlass.engine.bell import Bell
from windlass.engine.gate.changes import Changes
from windlass.engine.projects.tasks import Tasks
from windlass.engine.records.closing import end_task
from windlass.engine.waking.deliver import Deliver, mail_of
from windlass.engine.workflows import steps
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
        self.ports = ports
        self.store = ports.store
        self.clock = ports.clock
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
        return await self.store.write(beginning.make)

    async def _beginning(self, start: WorkflowStart) -> Beginning:
        project = await self.projects.at(start.path)
        workflow = await self.ports.library.workflow(start.file)
        name = await self.store.read(partial(free_name, start.instance, project, workflow))
        agents = [await self._engaged(project, workflow, agent, name) for agent in workflow.agents]
        await self.ports.git.main(project)
        return Beginning(
            project=project,
            workflow=workflow,
            agents=tuple(agents),
            values={**start.values, **workflow.values(name)},
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
        known = await self.store.read(lambda store: store.instances(project=project.id))
        channel = files.get("channel", "")
        ours = {each.files.get("channel") for each in known} | {f".windlass/context/{name}/channel.md"}
        if channel and channel not in ours and self.ports.chats.look(project.path, channel, 0, 0) is not None:
            raise Conflict(
                f"{channel} is there already, and is not a channel of ours.",
                hint="Move it away, or write another `file` for the channel of its context.",
            )
        return files

    async def _engaged(self, project: Project, workflow: Workflow, member: Member, instance: str) -> Agent:
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
            check_tools(self.ports.providers.get(agent.provider), member.tools, permissions)
        agent = replace(
            agent,
            instance=instance,
            workflow=workflow.name,
            shares=member.worktree is WorktreeChoice.SHARED,
            talks=workflow.context is not None and bool(workflow.context.channel),
            copies=copies,
            tools=member.tools,
        )
        await self.tasks.confinement.check(agent, project)
        return agent

    # ── looking ──

    async def every(self, path: str) -> list[Instance]:
        """Those of a project that have not ended."""
        project = await self.projects.known_at(path)
        key = project.id if project else ""
        return await self.store.read(lambda store: store.instances(project=key, live=True)) if key else []

    async def look(self, path: str, name: str) -> Situation:
        """What an instance of a project does now."""
        project = await self.projects.known_at(path)
        key = project.id if project else ""
        return await self.store.read(partial(self._situation, key, name, self.clock.now()))

    async def again(self, instance: Instance) -> Situation:
        """What an instance does by now; git is not asked where it is."""
        return await self.store.read(partial(self._situation, instance.project, instance.name, self.clock.now()))

    def _situation(self, project: str, name: str, now: float, store: Reading) -> Situation:
        instance = store.find(Instance, f"{project}/{name}")
        if instance is None:
            known = sorted(other.channel for other in store.instances(project=project)) if project else []
            listed = f"There are: {', '.join(known)}." if known else "`windlass run FILE` starts one."
            raise NotFound(f"There is no instance {name} here.", hint=listed)
        facts = self._facts(instance, now, store)
        changes = [each for task in instance.landing for each in store.changes_of_task(task)]
        held = [f"{change.id} is held: {change.reason}" for change in changes if change.state is ChangeState.HELD]
        return Situation(
            instance=instance,
            motion=motion_of(facts),
            failed=tuple(steps.failed(instance, store)),
            waiting=(*(steps.asked(facts, store) or held), *facts.stuck),
            changes=tuple(changes),
        )

    def _facts(self, instance: Instance, now: float, store: Reading) -> Facts:
        own = {*instance.agents}
        live = [run for run in store.live_runs(project=instance.project) if run.agent in own]
        unfinished = store.unfinished_tasks(project=instance.project)
        tasks = [task for task in unfinished if task.agent in own or task.id in instance.landing]
        settled = {task.id for task in tasks if steps.is_settled(store, task)}
        moving = {each.agent for each in live} | {
            task.agent for task in tasks if begins(task) and task.id not in settled
        }
        settled |= {task.id for task in tasks if task.state is TaskState.OPEN and steps.is_blocked(store, task, moving)}
        waking, stuck = list[str](), list[str]()
        for reader in store.readers_waiting():
            if reader not in own or instance.draining:
                continue
            mail = mail_of(store, reader, store.undelivered(reader=reader))
            match self.deliver.decide(mail, now) if mail else None:
                case policy.Wait(policy.BUSY) | policy.Wake():
                    waking.append(reader)
                case policy.Wait(reason, until):
                    waits = until is None or (mail and mail.turn and mail.turn not in moving)
                    (stuck if waits else waking).append(f"{reader}: {reason}")
        return Facts(live=live, tasks=tasks, settled=frozenset(settled), waking=waking, stuck=stuck)

    # ── ending ──

    async def stop(self, path: str, name: str, reason: str = "stopped by hand") -> list[str]:
        """End an instance, with all that its agents started. What was said and written stays; nothing more lands."""
        return await self._stop((await self.look(path, name)).instance, reason)

    async def stop_all(self, project: str = "") -> list[str]:
        """End every instance, of every project or of one."""
        live = await self.store.read(lambda store: store.instances(project=project, live=True))
        return [name for instance in live for name in await self._stop(instance, "stopped by hand")]

    async def _stop(
        self, instance: Instance, reason: str, ending: InstanceEnding = InstanceEnding.STOPPED
    ) -> list[str]:
        stopped = await self.runs.stop_each(instance.agents, reason)
        await self.store.write(partial(steps.end, instance.id, ending, reason, self.clock.now()))
        await self._give_up(await self.store.read(steps.unsettled))
        return stopped

    async def _give_up(self, unsettled: Iterable[Instance]) -> None:
        """What those who were stopped wanted to land does not land any more."""
        for instance in unsettled:
            await self.changes.give_up(instance.landing, instance.reason)

    async def drain(self, path: str, name: str) -> None:
        """Let those who work end, and start nobody any more."""
        project = await self.projects.at(path)
        await self.store.write(partial(steps.drain, f"{project.id}/{name}"))

    async def tick(self) -> bool:
        """What is quiet lands what it has made; then it ends, unless it was started to stay."""
        now = self.clock.now()
        unsettled, live = await self.store.read(lambda store: (steps.unsettled(store), store.instances(live=True)))
        with self.troubles.noted("workflows"):
            await self._give_up(unsettled)
        for instance in live:
            with self.troubles.noted("workflows"):
                if instance.deadline is not None:
                    self.bell.ring_in(instance.deadline - now)
                if instance.deadline is not None and instance.deadline <= now:
                    await self._stop(instance, "its time was over (limits.timeout)", InstanceEnding.TIMEOUT)
                elif await self.store.read(partial(self._is_due, instance, now)):
                    await self.store.write(partial(self._settle, instance.id, self.clock.now()))
        return False

    def _is_due(self, instance: Instance, now: float, store: Reading) -> bool:
        """Whether an instance has a step to take: the tick writes nothing for one that has none."""
        if steps.hopeless(store, instance):
            return True
        ends = instance.draining or not instance.stays
        lands = (instance.heads and instance.gate) or steps.landed(store, instance) != instance
        return bool(ends or lands) and motion_of(self._facts(instance, now, store)) is Motion.QUIET

    def _settle(self, key: str, now: float, store: Writing) -> None:
        """Within a transaction, because everything may have begun to move since the tick looked: take the next step."""
        instance = store.find(Instance, key)
        if instance is None or not instance.live:
            return
        while given_up := steps.hopeless(store, instance):  # what needs these is hopeless next
            for task, to, reason in given_up:
                end_task(store, task, to, now=now, reason=reason)
        if motion_of(self._facts(instance, now, store)) is not Motion.QUIET:
            return
        if instance.heads and instance.gate:
            steps.submit(store, instance, now)
        elif (settled := steps.landed(store, instance)) != instance:
            store.record("instance.landed", instance.channel, settled)
        elif instance.draining:
            steps.end(key, InstanceEnding.DRAINED, "those at work have ended, and nobody else was started", now, store)
        elif not instance.stays:
            steps.end(key, InstanceEnding.DONE, "all is done", now, store)
