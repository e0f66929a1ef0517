"""Forgetting a project: what its agents have not landed is saved first, then nothing of it is shown any more."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from windlass.core.display import some, word
from windlass.core.errors import Conflict, NotFound
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.project import Project
from windlass.core.nouns.task import TaskState
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading, Writing
from windlass.engine.background import Seats
from windlass.engine.gate.queue import Queue
from windlass.engine.projects.absences import Absences
from windlass.engine.records.closing import end_task, hush
from windlass.engine.tidy import Tidy

REASON = "its project was forgotten"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """An agent whose worktrees were saved and removed."""

    agent: Agent
    refs: Mapping[str, str]
    """The refs that bring them back, by project."""
    kept: str
    """Why one of them was left where it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """A project that a person has forgotten, and what became of its work."""

    project: Project
    cleared: tuple[Cleared, ...]
    changes: tuple[str, ...]
    """The changes that were given up."""


class Forgetting:
    """Every step can be repeated: until the last one, the project is still there."""

    def __init__(self, ports: Ports, queue: Queue, tidy: Tidy, *, absences: Absences, seats: Seats) -> None:
        self.store = ports.store
        self.git = ports.git
        self.clock = ports.clock
        self.queue = queue
        self.tidy = tidy
        self.absences = absences
        self.seats = seats

    async def find(self, key: str) -> Project:
        """The project with that name, path or id; a forgotten one only if no other is called so."""
        known = await self.store.read(lambda store: store.projects(forgotten=True))
        named = [project for project in known if key in (project.id, project.name, project.path)]
        found = [project for project in named if not project.forgotten] or named
        if not found:
            raise NotFound(f"There is no project {key[:200]!r}.", hint="Run `windlass project list` to see them.")
        if len(found) > 1:
            places = some([f"{project.path} ({project.id})" for project in found])
            raise Conflict(f"{len(found)} projects are called {key[:200]}: {places}.", hint="Name its id.")
        return found[0]

    async def listing(self, *, forgotten: bool = False) -> list[tuple[Project, tuple[int, int]]]:
        """The projects, each with the number of its agents at work and of its changes that have not ended."""

        def question(store: Reading) -> list[tuple[Project, tuple[int, int]]]:
            found = store.projects(forgotten=forgotten)
            return [(each, (len(store.agents(project=each.id)), len(store.changes(project=each.id)))) for each in found]

        return await self.store.read(question)

    async def forget(self, project: Project, *, sure: bool, delete_hub: bool) -> Forgotten:
        """Save what is unsaved, give up what waits, and show the project no more. `sure`: a person was asked."""
        await self._must_be_meant(project, sure=sure, delete_hub=delete_hub)
        await self.store.read(partial(_refuse, project))
        await self.store.write(partial(_end_tasks, project, self.clock.now()))
        changes = await self._drop_changes(project)
        agents = await self.store.read(partial(_agents, project))
        cleared = [await self._clear(agent, places) for agent, places in agents if await self._may_hold(agent, places)]
        if delete_hub and (kept := " ".join(each.kept for each in cleared if each.kept)):
            raise Conflict(
                f"The hub of {project.name} is not deleted, nor is it forgotten. {kept}",
                hint="Move what you need, remove that worktree, and say it again; or leave out --delete-hub.",
            )
        forgotten = await self.store.write(partial(_forget, project, cleared, self.clock.now(), delete_hub=delete_hub))
        await self.git.keep_spares(forgotten, 0)
        if delete_hub:
            await self.git.delete_hub(forgotten)
        return Forgotten(project=forgotten, cleared=tuple(cleared), changes=changes)

    async def _must_be_meant(self, project: Project, *, sure: bool, delete_hub: bool) -> None:
        """Refuse what someone may regret and was not asked about, and what was done before."""
        if project.forgotten and not delete_hub:
            raise Conflict(
                f"{project.name} was forgotten before.",
                hint="--delete-hub deletes its hub, and all that is saved there.",
            )
        if sure or (not project.forgotten and not delete_hub and await self.git.absence(project)):
            return
        what = (
            "deletes its hub and all that is saved there" if delete_hub else f"its repository {project.path} is there"
        )
        raise Conflict(
            f"{project.name} is not forgotten without a word from you: {what}.",
            hint=f"`windlass project forget {word(project.name)} --yes` does it.",
        )

    async def _drop_changes(self, project: Project) -> tuple[str, ...]:
        dropped = []
        for change in await self.store.read(lambda store: store.changes(project=project.id)):
            with suppress(Conflict):  # it has ended meanwhile
                dropped.append((await self.queue.drop(change.id, REASON)).id)
        return tuple(dropped)

    async def _may_hold(self, agent: Agent, places: list[Project]) -> bool:
        """Whether an agent may have a worktree: one that was retired long ago usually has none."""
        return agent.retired_at is None or any([await self.git.has_worktree(place, agent) for place in places])

    async def _clear(self, agent: Agent, places: list[Project]) -> Cleared:
        async with self.seats[agent.id]:
            refs, kept = await self.tidy.clear(agent, places)
        return Cleared(agent=agent, refs=refs, kept=kept)


def _agents(project: Project, store: Reading) -> list[tuple[Agent, list[Project]]]:
    """All agents that a project ever had, each with the projects where it may have a worktree; of a retired guest from
    another project, this one."""
    own = [*store.agents(project=project.id), *store.agents(project=project.id, retired=True)]
    guests = [each for each in store.agents(retired=True) if project.id in each.projects and each.project != project.id]
    found = [(agent, [place for key in agent.projects if (place := store.find(Project, key))]) for agent in own]
    return [*found, *((guest, [project]) for guest in guests)]


def _refuse(project: Project, store: Reading) -> None:
    """Raise Conflict while someone works there."""
    guests = [each for each in store.agents() if project.id in each.projects and each.project != project.id]
    running = [run.agent for run in store.live_runs(project=project.id)]
    if running:
        raise Conflict(
            f"{project.name} is not forgotten while agents run there: {some(running)}.",
            hint=f"`windlass stop {running[0]}` ends a run; what was done so far is kept.",
        )
    if live := store.instances(project=project.id, live=True):
        raise Conflict(
            f"{project.name} is not forgotten while a workflow goes on there: @{live[0].name}.",
            hint=f"`windlass stop @{live[0].name}` ends it.",
        )
    if guests:
        names = some([agent.id for agent in guests])
        raise Conflict(
            f"{project.name} is not forgotten while agents of another project work there, too: {names}.",
            hint=f"See `windlass show {guests[0].id}`.",
        )


def _end_tasks(project: Project, now: float, store: Writing) -> None:
    _refuse(project, store)
    for task in store.unfinished_tasks(project=project.id):
        end_task(store, task, TaskState.CANCELLED, now=now, reason=REASON)


def _forget(project: Project, cleared: list[Cleared], now: float, store: Writing, *, delete_hub: bool) -> Project:
    """Retire the agents and mark the project, unless something has begun there meanwhile."""
    _refuse(project, store)
    begun = [task.id for task in store.unfinished_tasks(project=project.id)]
    begun += [change.id for change in store.changes(project=project.id)]
    if begun:
        raise Conflict(f"{begun[0]} has come up in {project.name} meanwhile.", hint="Say it again.")
    current = store.find(Project, project.id) or project
    for agent in cleared:
        _retire(store, agent, now)
    forgotten = replace(
        current,
        forgotten_at=current.forgotten_at or now,
        hub_deleted_at=now if delete_hub else current.hub_deleted_at,
    )
    store.record("project.forgotten", project.id, forgotten)
    return forgotten


def _retire(store: Writing, cleared: Cleared, now: float) -> None:
    agent = cleared.agent
    if agent.retired_at is None:
        hush(store, agent.id, REASON)
    retired = replace(agent, retired_at=now if agent.retired_at is None else agent.retired_at)
    first = next(iter(cleared.refs.values()), "")
    store.record("agent.retired", agent.id, retired, rescue=first, rescues=dict(cleared.refs), kept=cleared.kept)
