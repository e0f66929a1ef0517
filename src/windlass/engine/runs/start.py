"""Runs: claimed in one transaction, launched, recorded in a second; and found again after a crash."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from typing import Any

from windlass.core import codec
from windlass.core.errors import BadInput, Conflict, NotAllowed, NotFound, Unavailable, WindlassError
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.message import Delivery, MailItem, Message, Receipt
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Cause, Outcome, Run
from windlass.core.nouns.task import Mode, Task, TaskState, title_of
from windlass.core.ports import Ports
from windlass.core.ports.processes import Launch
from windlass.core.ports.store import Reading, Writing
from windlass.core.runs.provider import StartRequest
from windlass.core.runs.signal import BadSignal, read_signal
from windlass.core.runs.workdir import Site
from windlass.core.settings.models import settings_for
from windlass.engine.background import Background, Seats
from windlass.engine.bell import Bell
from windlass.engine.confinement import Confinements
from windlass.engine.records import instances
from windlass.engine.records.closing import end_task
from windlass.engine.records.lookup import get
from windlass.engine.records.messages import current_task
from windlass.engine.records.sites import site_of
from windlass.engine.runs.briefing import Briefings, context_files, task_file
from windlass.engine.runs.worktree import RunPlace, WorktreeSetups
from windlass.engine.slots import Slots

log = logging.getLogger("windlass")


@dataclass(frozen=True, slots=True)
class Assignment:
    """A run's agent, task and mail, and the files about its task."""

    site: Site
    task: Task
    mail: tuple[Message, ...]
    context: Mapping[str, str]
    """Files about what its task stands on."""


class Runs:
    """Starts and stops runs. The row of a live run is the claim: one per agent."""

    def __init__(
        self, ports: Ports, bell: Bell, confinement: Confinements, slots: Slots, *, background: Background, seats: Seats
    ) -> None:
        self.ports = ports
        self.store = ports.store
        self.processes = ports.processes
        self.clock = ports.clock
        self.confinement = confinement
        self.background = background
        self.slots = slots
        self.seats = seats
        self.setup = WorktreeSetups(ports, bell, confinement)
        self.briefings = Briefings(ports)
        self.stir: Callable[[str], None] = lambda _: None

    async def start(
        self, agent: Agent, task: Task | None, cause: Cause, *, mail: Sequence[Delivery] = (), session: str = ""
    ) -> None:
        """Claim the agent for a run, then launch it beside the tick."""
        project = await self.store.read(lambda store: get(store, Project, agent.project))
        sandbox = await self.confinement.keeper(agent, project)
        claim = Claim(
            agent=agent,
            task=task.id if task and cause is not Cause.CALL else "",
            cause=cause,
            mail=tuple(mail),
            session=session,
            sandbox=sandbox,
            now=self.clock.now(),
            fits=partial(self.slots.fits, gone=await self.slots.gone_before(agent)),
        )
        run = await self.store.write(claim.make)
        self.background.begin(run.id, lambda: self.launch(run))

    async def launch(self, run: Run) -> None:
        """Make ready all that a run needs, start its process, and record it. What is only unavailable is repeated."""
        current = await self.store.read(lambda store: store.find(Run, run.id))
        if current is None or not current.live or current.identity is not None:
            return  # begun or ended since this was asked for
        if current.stopping:
            await self._could_not_start(run, current.stopping)
            return
        try:
            given = await self.store.read(lambda store: _assignment(store, run))
            if absent := next(filter(None, [await self.ports.git.absence(each) for each in given.site.projects]), ""):
                await self.store.write(partial(delay, run.id, absent))
                return  # the watch tick tries again
            async with self.seats[run.agent]:
                place = await self.setup.place(run, given.site)
            identity = await self.processes.start(await self._prepare(run, given, place))
        except Unavailable as error:
            await self.store.write(partial(delay, run.id, str(error)))
            raise
        except WindlassError as error:
            await self._could_not_start(run, f"could not be started: {error} {error.hint}".strip())
            return
        await self._began(replace(run, identity=identity, base=place.base))
        if self.background.alone:
            self.background.begin(f"spares of {given.site.project.id}", lambda: self.setup.keep_spares(given.site))

    async def _prepare(self, run: Run, given: Assignment, place: RunPlace) -> Launch:
        """Write the run's files, and say what to start with which environment."""
        agent, task, project, worktree = given.site.agent, given.task, given.site.project, place.folder
        prompt = await self.briefings.prompt(run, task=task, site=given.site, worktree=worktree, mail=given.mail)
        provider = self.ports.providers.get(run.provider)
        self.confinement.hold(agent, run.sandbox, reviews=bool(task.reviews))
        briefing = await self.ports.workdirs.brief(
            run.id,
            worktree,
            prompt=prompt.text,
            manifest={"agentId": agent.id, "agentName": agent.name, "mode": task.mode},
            inputs={"task.md": task_file(task)},
            context=given.context,
            files={file: agent.options[file] for file in provider.files} | {**provider.writes} | prompt.files,
        )
        chosen = settings_for(agent.model, self.ports.settings.at("").models)
        start = StartRequest(
            prompt=prompt.text,
            system=prompt.system,
            prompt_file=briefing.prompt,
            folder=str(PurePath(briefing.prompt).parent),
            worktree=worktree,
            repositories=place.worktrees if given.site.agent.also else (),
            number=run.number,
            session=run.session,
            new_session=self.ports.uuid(),
            model=agent.model,
            base_url=chosen.base_url,
            key=chosen.key,
            permissions=agent.permissions,
            tools=agent.tools,
            sandboxed=bool(run.sandbox),
            options=agent.options,
            files=briefing.files,
        )
        environment = {
            **provider.environment(start),
            **self.ports.git.environment(project, agent),
            **place.environment,
            "WINDLASS_HOME": self.ports.home,
            "WINDLASS_AGENT": agent.id,
            "WINDLASS_RUN": run.id,
            "WINDLASS_RUN_NUMBER": str(run.number),
            "WINDLASS_PROJECT": project.path,
            "WINDLASS_PROMPT": briefing.prompt,
            "WINDLASS_SIGNAL": briefing.signal,
            "WINDLASS_TOKEN": self.ports.token(run.id),
        }
        around = self.confinement.around(given.site, provider, place.folders, folder=start.folder)
        return Launch(
            run=run.id,
            argv=provider.argv(start),
            cwd=worktree,
            environment=environment,
            keeps=self.confinement.variables(project, provider, agent.model),
            stdin=briefing.prompt if provider.stdin else "",
            sandbox=around if run.sandbox else None,
        )

    async def recover(self, run: Run) -> bool:
        """A run whose start was never recorded: adopt its process, or start again. False: it has ended meanwhile."""
        identity = await self.processes.find(run.id)
        if identity is not None:
            log.info("adopting run %s, pid %s", run.id, identity.pid)
            await self._began(replace(run, identity=identity))
        elif self.background.busy(run.id) or not await self._left_traces(run.id):
            self.background.begin(run.id, lambda: self.launch(run))
        else:
            return False
        return True

    async def _left_traces(self, run: str) -> bool:
        """Whether a process that has gone was this run: it told how it ended, or at least it said something."""
        return await self.processes.exit_code(run) is not None or bool(await self.processes.output(run, 0, 1))

    async def stop(self, name: str, reason: str) -> bool:
        """Ask a run to stop, or a task not to begin. False: there was nothing to stop."""
        return bool(await self.stop_each([name], reason))

    async def stop_each(self, names: Iterable[str], reason: str) -> list[str]:
        """The same for several agents, in one transaction. Returns those that had something to stop."""
        now = self.clock.now()
        stopping = await self.store.write(
            lambda store: {name: _ask_to_stop(store, name, reason, now) for name in names}
        )
        for found in stopping.values():
            if isinstance(found, Run):
                self.stir(found.id)
        return [name for name, found in stopping.items() if found]

    async def signal(self, run_id: str, value: Mapping[str, Any]) -> Run:
        """Take a run's signal by command instead of by file."""
        text = codec.encode(await self.unmarked(run_id, value))
        signal = read_signal(text)
        if isinstance(signal, BadSignal):
            raise BadInput(f"That is no signal: {signal.problem}.")

        def step(store: Writing) -> Run:
            run = store.find(Run, run_id)
            if run is None or not run.live or run.stopping:
                raise NotAllowed("This run is over; its signal has been given.")
            said = replace(run, said=text.decode())
            store.record("run.signalled", run.id, said)
            return said

        run = await self.store.write(step)
        self.stir(run.id)
        return run

    async def unmarked(self, run_id: str, value: Mapping[str, Any]) -> dict[str, Any]:
        """Redact an agent's secrets in a value. Raises NotFound for an unknown run."""
        run = await self.store.read(lambda store: get(store, Run, run_id))
        agent = await self.store.read(lambda store: get(store, Agent, run.agent))
        project = await self.store.read(lambda store: get(store, Project, agent.project))
        return (await self.confinement.redactor(run, project)).whole(dict(value))

    async def _began(self, run: Run) -> None:
        now = self.clock.now()

        def step(store: Writing) -> None:
            current = store.find(Run, run.id)
            if current is not None and current.live and run.identity is not None:
                begun = current.begin(run.identity, base=run.base or current.base, now=now)
                store.record("run.started", run.id, begun)

        await self.store.write(step)
        self.stir(run.id)

    async def _could_not_start(self, run: Run, reason: str) -> None:
        """End a run without a process: as failed, or as stopped if someone asked for that meanwhile."""
        now = self.clock.now()

        def step(store: Writing) -> None:
            current = store.find(Run, run.id)
            task = store.find(Task, run.task)
            if current is None or not current.live:
                return
            outcome, state = Outcome.FAILED, TaskState.FAILED
            if current.stopping:
                outcome, state = Outcome.STOPPED, TaskState.CANCELLED
            why = current.stopping or reason
            store.record("run.finished", run.id, current.end(outcome, now=now, reason=why))
            if task is not None and not task.ended:
                end_task(store, task, state, now=now, reason=why)

        await self.store.write(step)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The intent to run, as one transaction."""

    agent: Agent
    task: str
    """Nothing: what the mail wants becomes one."""
    cause: Cause
    mail: tuple[Delivery, ...]
    session: str
    sandbox: str
    now: float
    fits: Callable[[Reading, Agent], bool]
    """Whether an agent may start a run now: asked again here, because other ticks start runs, too."""

    def make(self, store: Writing) -> Run:
        """Write the run, the task taken up, and the mail put into its prompt; or refuse."""
        runs = store.runs_of(self.agent.id)
        if runs and runs[-1].live:
            raise Conflict(f"{self.agent.id} is running already.")
        if turn := instances.turn_of(store, self.agent, self._mail_items(store)):
            raise Conflict(f"{self.agent.id} waits for {turn}.")
        task = store.find(Task, self.task) if self.task else self._called(store)
        if task is None or task.ended:
            raise Conflict(f"The task of {self.agent.id} is over.")
        if not instances.admits(store, self.agent, self._mail_items(store), task):
            raise Conflict(f"The instance of {self.agent.id} starts nobody any more.")
        if not self.fits(store, self.agent):
            raise Conflict(f"There is no slot for {self.agent.id}.")
        run = Run(
            id=store.next_id(Run),
            agent=self.agent.id,
            task=task.id,
            number=len(runs) + 1,
            provider=self.agent.provider,
            model=self.agent.model,
            cause=self.cause,
            session=self.session,
            sandbox=self.sandbox,
            base=runs[-1].base if runs else "",
            starting_at=self.now,
        )
        active = task if task.state is TaskState.ACTIVE else task.move(TaskState.ACTIVE, now=self.now)
        carried = (delivery.move(Receipt.DELIVERED, run=run.id) for delivery in self._owed(store))
        agent = replace(self.agent, retired_at=None)
        other = [agent] if agent != store.find(Agent, agent.id) else []  # it is back, or on other terms
        store.record("run.starting", run.id, run, active, *carried, *other)
        return run

    def _owed(self, store: Reading) -> list[Delivery]:
        """Its mail as it is now: some may have been read meanwhile."""
        found = (store.find(Delivery, delivery.id) for delivery in self.mail)
        return [delivery for delivery in found if delivery and delivery.owed]

    def _mail_items(self, store: Reading) -> list[MailItem]:
        owed = self._owed(store)
        return [MailItem(found, delivery) for delivery in owed if (found := store.find(Message, delivery.message))]

    def _wanted(self, store: Reading) -> Mode:
        """The mode of a called agent's new task: a plan that was not finished stays a plan."""
        runs = store.runs_of(self.agent.id)
        last = store.find(Task, runs[-1].task) if runs else None
        return last.wants if last and last.state is not TaskState.DONE else Mode.EXECUTE

    def _called(self, store: Writing) -> Task | None:
        """Make a task of the first message that starts the agent; None if all has been read meanwhile."""
        mail = [item.message for item in self._mail_items(store) if item.calls]
        calling = next((message for message in mail if message.spawns), mail[0] if mail else None)
        if calling is None:
            return None
        hidden = f"{calling.id} from {calling.sender}"  # tasks are for all to see, and these words are not
        title = title_of(calling.body) if calling.channel == "main" and not calling.direct else hidden
        task = Task(
            id=store.next_id(Task),
            project=self.agent.project,
            title=title,
            agent=self.agent.id,
            wants=self._wanted(store),
            created_at=self.now,
        )
        store.record("task.added", task.id, task)
        return task


def _assignment(store: Reading, run: Run) -> Assignment:
    task = store.find(Task, run.task)
    if task is None:
        raise NotFound(f"Run {run.id} has lost its task.")
    found = (store.find(Message, delivery.message) for delivery in store.deliveries_of(run.id))
    mail = tuple(message for message in found if message is not None)
    return Assignment(site_of(store, run.agent), task, mail, context_files(store, task))


def delay(key: str, reason: str, store: Writing) -> None:
    """Within a transaction: say on a run why it is not started, or not judged, yet."""
    run = store.find(Run, key)
    if run is not None and run.live and run.reason != reason:
        store.record("run.delayed", key, replace(run, reason=reason))


_STOPPABLE = (TaskState.OPEN, TaskState.ACTIVE, TaskState.WAITING, TaskState.FAILED)


def _ask_to_stop(store: Writing, name: str, reason: str, now: float) -> Run | Task | None:
    agent = get(store, Agent, name)
    current = current_task(store, agent.id)
    waiting = [task for task in store.unfinished_tasks(agent=agent.id) if task.state is TaskState.OPEN]
    for task in waiting:
        end_task(store, task, TaskState.CANCELLED, now=now, reason=reason)
    run = store.latest_runs([agent.id]).get(agent.id)
    if run is not None and run.live:
        stopping = replace(run, stopping=run.stopping or reason)
        store.record("run.stopping", run.id, stopping)
        return stopping
    if current is not None and current.state in _STOPPABLE and current not in waiting:
        end_task(store, current, TaskState.CANCELLED, now=now, reason=reason)
        return current
    return waiting[0] if waiting else None
