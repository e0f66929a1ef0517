"""Runs: claimed in one transaction, launched, recorded in a second; and found again after a crash."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from windlass.core import codec
from windlass.core.agent import Agent
from windlass.core.errors import BadInput, Conflict, NotAllowed, NotFound, WindlassError
from windlass.core.message import Delivery, Message, Receipt
from windlass.core.ports import (
    Clock,
    Git,
    Launch,
    Processes,
    Providers,
    Reading,
    SettingsReader,
    Store,
    Workdirs,
    Writing,
)
from windlass.core.project import Project
from windlass.core.prompt import build_prompt
from windlass.core.provider import Start
from windlass.core.run import Cause, Outcome, Run
from windlass.core.signal import BadSignal, read_signal
from windlass.core.task import Task, TaskState
from windlass.engine.bell import Bell
from windlass.engine.lanes import Lanes

log = logging.getLogger("windlass")


class Runs:
    """Starts and stops runs. The row of a live run is the claim: one per agent."""

    def __init__(
        self,
        store: Store,
        git: Git,
        processes: Processes,
        workdirs: Workdirs,
        providers: Providers,
        settings: SettingsReader,
        clock: Clock,
        bell: Bell,
        lanes: Lanes,
        blocks: Mapping[str, str],
        home: str,
    ) -> None:
        self.store = store
        self.git = git
        self.processes = processes
        self.workdirs = workdirs
        self.providers = providers
        self.settings = settings
        self.clock = clock
        self.bell = bell
        self.lanes = lanes
        self.blocks = blocks
        self.home = home
        self.stir: Callable[[str], None] = lambda _: None

    async def start(self, agent: Agent, task: Task, cause: Cause, mail: Sequence[Delivery], session: str = "") -> None:
        """Claim the agent for a run, then launch it beside the tick."""
        now = self.clock.now()
        run = await self.store.write(lambda store: claim(store, agent, task.id, cause, mail, session, now))
        self.bell.ring()
        self.lanes.begin(run.id, lambda: self.launch(run))

    async def launch(self, run: Run) -> None:
        """Make ready all that a run needs, start its process, and record it."""
        try:
            agent, task, project, mail = await self.store.read(lambda store: _assignment(store, run))
            worktree, base = await self.git.worktree(project, agent)
            prompt = build_prompt(
                agent=agent, task=task, main=project.main, blocks=self.blocks, mail=mail, cause=run.cause
            )
            launch = await self._prepare(run, agent, task, project, worktree, prompt)
            identity = await self.processes.start(launch)
        except WindlassError as error:
            await self._could_not_start(run, error)
            return
        await self._began(replace(run, identity=identity, base=base))

    async def _prepare(
        self, run: Run, agent: Agent, task: Task, project: Project, worktree: str, prompt: str
    ) -> Launch:
        """Write the run's files, and say what to start with which environment."""
        provider = self.providers.get(run.provider)
        briefing = await self.workdirs.brief(
            run.id,
            worktree,
            prompt=prompt,
            manifest={"agentId": agent.id, "agentName": agent.name, "mode": "execute"},
            inputs={"task.md": _assignment_file(task)},
            files={each: agent.options[each] for each in provider.files},
        )
        start = Start(
            prompt_file=briefing.prompt,
            number=run.number,
            session=run.session,
            options=agent.options,
            files=briefing.files,
        )
        environment = {
            **self.git.environment(project, agent),
            "WINDLASS_HOME": self.home,
            "WINDLASS_AGENT": agent.id,
            "WINDLASS_RUN": run.id,
            "WINDLASS_RUN_NUMBER": str(run.number),
            "WINDLASS_PROJECT": project.path,
            "WINDLASS_PROMPT": briefing.prompt,
            "WINDLASS_SIGNAL": briefing.signal,
        }
        return Launch(
            run=run.id, argv=provider.argv(start), cwd=worktree, environment=environment, stdin=briefing.prompt
        )

    async def recover(self, run: Run) -> bool:
        """A run whose start was never recorded: adopt its process, or start again. False: it has ended meanwhile."""
        identity = await self.processes.find(run.id)
        if identity is not None:
            log.info("adopting run %s, pid %s", run.id, identity.pid)
            await self._began(replace(run, identity=identity))
        elif self.processes.exit_code(run.id) is None:
            self.lanes.begin(run.id, lambda: self.launch(run))
        else:
            return False
        return True

    def adopt(self, run: Run) -> None:
        """Follow the process of a run that an earlier daemon started."""
        if run.identity is not None:
            self.processes.follow(run.id, run.identity, self.stir)

    async def stop(self, name: str, reason: str) -> bool:
        """Ask a run to stop, or a task not to begin. False: there was nothing to stop."""
        stopping = await self.store.write(lambda store: _ask_to_stop(store, name, reason, self.clock.now()))
        self.bell.ring()
        if isinstance(stopping, Run):
            self.stir(stopping.id)
        return bool(stopping)

    async def signal(self, run_id: str, value: Mapping[str, Any]) -> Run:
        """Take a run's signal by command instead of by file."""
        text = codec.encode(dict(value))
        signal = read_signal(text)
        if isinstance(signal, BadSignal):
            raise BadInput(f"That is no signal: {signal.problem}.")

        def step(store: Writing) -> Run:
            run = store.find(Run, run_id)
            if run is None or not run.live:
                raise NotAllowed("This run is over; its signal has been given.")
            said = replace(run, said=text.decode())
            store.record("run.signalled", run.id, said)
            return said

        run = await self.store.write(step)
        self.stir(run.id)
        return run

    async def _began(self, run: Run) -> None:
        now = self.clock.now()

        def step(store: Writing) -> Run | None:
            current = store.find(Run, run.id)
            if current is None or not current.live or run.identity is None:
                return None
            begun = current.begin(run.identity, base=run.base or current.base, now=now)
            store.record("run.started", run.id, begun)
            return begun

        begun = await self.store.write(step)
        if begun is not None and begun.identity is not None:
            self.processes.follow(begun.id, begun.identity, self.stir)
        self.bell.ring()

    async def _could_not_start(self, run: Run, error: WindlassError) -> None:
        now = self.clock.now()
        reason = f"could not be started: {error}"

        def step(store: Writing) -> None:
            current = store.find(Run, run.id)
            task = store.find(Task, run.task)
            if current is None or not current.live:
                return
            ended = current.end(Outcome.FAILED, now=now, reason=reason, evidence=(error.hint,) if error.hint else ())
            rows = [task.move(TaskState.FAILED, now=now, reason=reason)] if task and not task.ended else []
            store.record("run.finished", run.id, ended, *rows)

        await self.store.write(step)
        self.bell.ring()


def claim(
    store: Writing, agent: Agent, task_id: str, cause: Cause, mail: Sequence[Delivery], session: str, now: float
) -> Run:
    """Within a transaction: the intent to run, the task taken up, the mail put into its prompt."""
    runs = store.runs_of(agent.id)
    if runs and runs[-1].live:
        raise Conflict(f"{agent.id} is running already.")
    task = store.find(Task, task_id)
    if task is None or task.state is TaskState.DONE:
        raise Conflict(f"The task of {agent.id} is done.")
    run = Run(
        id=store.next_id(Run),
        agent=agent.id,
        task=task.id,
        number=len(runs) + 1,
        provider=agent.provider,
        cause=cause,
        session=session,
        base=runs[-1].base if runs else "",
        starting_at=now,
    )
    active = task if task.state is TaskState.ACTIVE else task.move(TaskState.ACTIVE, now=now)
    carried = (each.move(Receipt.DELIVERED, run=run.id) for each in mail)
    store.record("run.starting", run.id, run, active, *carried)
    return run


def _assignment(store: Reading, run: Run) -> tuple[Agent, Task, Project, list[Message]]:
    agent = store.find(Agent, run.agent)
    task = store.find(Task, run.task)
    project = store.find(Project, agent.project) if agent else None
    if agent is None or task is None or project is None:
        raise NotFound(f"Run {run.id} has lost its agent, task or project.")
    found = (store.find(Message, each.message) for each in store.deliveries_of(run.id))
    return agent, task, project, [each for each in found if each is not None]


def _ask_to_stop(store: Writing, name: str, reason: str, now: float) -> Run | Task | None:
    agent = store.find(Agent, name)
    if agent is None:
        raise NotFound(f"There is no agent {name}.")
    run = store.latest_runs([agent.id]).get(agent.id)
    if run is not None and run.live:
        stopping = replace(run, stopping=run.stopping or reason)
        store.record("run.stopping", run.id, stopping)
        return stopping
    for task in store.unfinished_tasks():
        if task.agent == agent.id and task.state in (TaskState.OPEN, TaskState.ACTIVE, TaskState.WAITING):
            cancelled = task.move(TaskState.CANCELLED, now=now, reason=reason)
            store.record("task.cancelled", task.id, cancelled)
            return cancelled
    return None


def _assignment_file(task: Task) -> str:
    title = codec.encode(task.title).decode()
    return f"---\nid: {task.id}\ntitle: {title}\n---\n\n{task.brief or task.title}\n"
