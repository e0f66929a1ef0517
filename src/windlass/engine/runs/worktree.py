"""The place of a run: a worktree at the right commit, set up as the project wants, with ports of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from windlass.core.errors import BadInput, WindlassError
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Change
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Cause, Run
from windlass.core.nouns.task import Task, TaskState
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading, Writing
from windlass.core.runs.workdir import Site
from windlass.core.runs.worktree_setup import PortRange, PreparedWorktree, pick_ports, setup_key
from windlass.core.settings.schema import WorktreeSettings
from windlass.engine.bell import Bell
from windlass.engine.chatfiles.files import begin
from windlass.engine.confinement import Confinements
from windlass.engine.records.documents import revised
from windlass.engine.records.instances import enter, writer_beside
from windlass.engine.records.messages import channel_of, tell_person

log = logging.getLogger("windlass")

MOST_KEPT = 100_000
"""Characters of a set-up's output: the last ones."""


@dataclass(frozen=True, slots=True)
class RunPlace:
    """The place of a run."""

    folder: str
    worktrees: tuple[str, ...]
    base: str
    """The commit of main that it starts from, in its own project; of a review, the commit that it looks at."""
    environment: Mapping[str, str]
    """Further variables for its environment."""

    @property
    def folders(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.folder, *self.worktrees)))


class WorktreeSetups:
    """Everything between the claim of a run and its process. All of it can be repeated."""

    def __init__(self, ports: Ports, bell: Bell, confinement: Confinements) -> None:
        self.ports = ports
        self.store = ports.store
        self.git = ports.git
        self.confinement = confinement
        self.clock = ports.clock
        self.bell = bell

    async def place(self, run: Run, site: Site) -> RunPlace:
        """Make the worktrees ready, for a new task at main. Raises BadInput, with the last lines, if a set-up fails."""
        made = [await self._worktree(run, project, site.agent) for project in site.projects]
        worktrees = tuple(place.folder for place in made)
        folder = site.folder(self.ports.home, worktrees[0])
        if len(worktrees) > 1:
            await self.ports.workdirs.gather(folder, dict(zip(site.names, worktrees, strict=True)))
        return replace(made[0], folder=folder, worktrees=worktrees)

    async def keep_spares(self, site: Site) -> None:
        """Let the next agents here start sooner. Only speed is lost where that fails, such as on a full disk."""
        for project in site.projects:
            room = self.ports.settings.at(project.path).worktree.spare_mb * 1_000_000
            try:
                await self.git.keep_spares(project, room, like=site.agent)
            except WindlassError as error:
                log.warning("no checkout of %s is kept ready: %s", project.name, error)

    async def _worktree(self, run: Run, project: Project, agent: Agent) -> RunPlace:
        seen = await self.store.read(lambda store: _reviewed(store, run))
        start = await self.store.write(partial(enter, run, agent)) if agent.workflow else None
        if seen is not None:
            await self.git.renew(project, agent, at=seen.head)
        elif agent.copies:
            await self.git.renew(project, agent, at=await self.git.checkout(project))
        elif start is not None:
            writer = await self.store.read(partial(writer_beside, agent))  # whose newest commit a reader looks at
            newest = await self.git.branch(project, writer) if writer else ""
            await self._renew(run, project, agent, at=newest or start)
        elif await self.store.read(lambda store: _begins_anew(store, run)):
            await self._renew(run, project, agent)
        settings = self.ports.settings.at(project.path).worktree
        new = not await self.git.has_worktree(project, agent)
        environment = await self._enter(project, agent, settings, new=new)
        worktree, main = await self.git.worktree(project, agent)
        base = seen.head if seen else main
        if settings.copy or settings.link or settings.setup.strip():
            given = {**self.git.environment(project, agent), "WINDLASS_PROJECT": project.path, **environment}
            await self._prepare(run, project, agent, worktree, given)
        return RunPlace(worktree, (worktree,), base, environment)

    async def _renew(self, run: Run, project: Project, agent: Agent, *, at: str = "") -> None:
        """Save the work of an earlier task that has not landed, tell a person, and begin anew."""
        saved = await self.git.renew(project, agent, at=at)
        if saved:
            await self.store.write(partial(_tell_saved, run, project.id, saved, self.clock.now()))

    async def _enter(self, project: Project, agent: Agent, settings: WorktreeSettings, *, new: bool) -> dict[str, str]:
        """Note a new worktree before it is made; and ports that no other agent at work has, as its environment."""
        own = await self.store.read(lambda store: _ports_of(store, agent))
        if new or (settings.ports and not (own and own.fits(settings))):
            own = await self.store.write(partial(_note, project, agent, settings, new))
        if not settings.ports:
            return {}
        if own is None:
            log.warning("no ports are left for %s", agent.id)
            return {}
        return {"WINDLASS_PORT": str(own.first), "WINDLASS_PORTS": str(own)}

    async def _prepare(
        self, run: Run, project: Project, agent: Agent, worktree: str, environment: dict[str, str]
    ) -> None:
        settings = self.ports.settings.at(project.path).worktree
        await self.git.hide(project, agent, (*settings.copy, *settings.link))
        key = setup_key(settings.setup, await self.git.locks(project, agent))
        provider = self.ports.providers.get(run.provider)
        site = Site(agent, (project,))
        around = self.confinement.around_setup(site, provider, worktree=worktree) if run.sandbox else None
        preparing = self.ports.setups.prepare(
            worktree, project.path, agent.id, settings, key=key, environment=environment, sandbox=around
        )
        prepared = await self._unless_stopped(run, preparing)
        if run.number == 1:  # later, what git ignores there may be the agent's own
            await self.git.record_extra_files(project, agent)
        if prepared.notes or prepared.output or prepared.failure:
            await self.store.write(partial(_keep, agent, prepared, self.clock.now()))
        if prepared.failure:
            raise BadInput(
                f"The set-up of its worktree failed: {prepared.failure}",
                hint=f"`windlass show {agent.id}` has its output; the command is the setting worktree.setup.",
            )

    async def _unless_stopped(self, run: Run, preparing: Coroutine[Any, Any, PreparedWorktree]) -> PreparedWorktree:
        """Wait for the set-up, but end it when the run is asked to stop."""
        ear = self.bell.ear()
        work = asyncio.ensure_future(preparing)
        try:
            while not work.done():
                ear.clear()
                current = await self.store.read(lambda store: store.find(Run, run.id))
                if current is None or not current.live or current.stopping:
                    raise BadInput("It was stopped before it began.")
                ring = asyncio.ensure_future(ear.wait())
                await asyncio.wait({work, ring}, return_when=asyncio.FIRST_COMPLETED)
                ring.cancel()
            return work.result()
        finally:
            work.cancel()
            await asyncio.wait({work})


def _begins_anew(store: Reading, run: Run) -> bool:
    """Whether it is the first of a later task: one that was given to it, or that followed on one which is done.

    Who is called after a task that failed or was stopped finds its worktree as it left it, unless it was only to look.
    """
    before = [old for old in store.runs_of(run.agent) if old.number < run.number]
    if not before or before[-1].task == run.task or run.cause not in (Cause.TASK, Cause.CALL):
        return run.cause is Cause.TASK and run.number > 1
    last = store.find(Task, before[-1].task)
    return run.cause is Cause.TASK or (last is not None and (last.state is TaskState.DONE or not last.mode.writes))


def _reviewed(store: Reading, run: Run) -> Change | None:
    """The change that a run is to look at, as it is now."""
    task = store.find(Task, run.task)
    return store.find(Change, task.reviews) if task and task.reviews else None


def _tell_saved(run: Run, project: str, saved: str, now: float, store: Writing) -> None:
    agent = store.find(Agent, run.agent)
    store.record("agent.renewed", run.agent, *([agent] if agent else []), rescue=saved, rescues={project: saved})
    body = f"What {run.agent} had not landed before is saved as {saved}; `windlass rescue list` shows it."
    tell_person(store, body, channel=channel_of(run.task), now=now)


def setup_document(agent: Agent) -> str:
    """The id of the document that keeps what an agent's set-up printed."""
    return f"{agent.project}/setup/{agent.id}"


def _ports_of(store: Reading, agent: Agent) -> PortRange | None:
    kept = store.position(_ports_key(agent))
    return PortRange.parse(kept) if kept else None


def _ports_key(agent: Agent) -> str:
    return f"{agent.project}/ports/{agent.id}"


def _note(project: Project, agent: Agent, settings: WorktreeSettings, new: bool, store: Writing) -> PortRange | None:
    """Within a transaction: what is known of a new worktree, and its agent's ports; an agent keeps its own."""
    if new:
        begin(project, agent, store)
    own = _ports_of(store, agent)
    fits = not settings.ports or (own is not None and own.fits(settings))
    return own if fits else _give_ports(agent, settings, store)


def _give_ports(agent: Agent, settings: WorktreeSettings, store: Writing) -> PortRange | None:
    others = (_ports_of(store, other) for other in store.agents() if other.id != agent.id)
    given = pick_ports(settings, [other for other in others if other])
    if given is not None:
        store.set_position(_ports_key(agent), str(given))
        store.record("agent.numbered", agent.id, ports=str(given))
    return given


def _keep(agent: Agent, prepared: PreparedWorktree, now: float, store: Writing) -> None:
    notes = "".join(f"note: {note}\n" for note in prepared.notes)
    failure = f"failed: {prepared.failure}\n" if prepared.failure else ""
    body = f"{notes}{prepared.output[-MOST_KEPT:]}{failure}"
    document = revised(store, agent.project, f"setup/{agent.id}", body, now=now)
    store.record("agent.prepared", agent.id, document, passed=not prepared.failure, notes=list(prepared.notes))
