"""The radar: look at the work of busy agents, tell which are about to collide, and act on it as set."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace

from windlass.core.errors import NotFound, WindlassError
from windlass.core.nouns.agent import Agent, Permissions
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Run
from windlass.core.nouns.task import Task, TaskState
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading, Writing
from windlass.core.radar import collisions as foreseen
from windlass.core.radar.collisions import Act, Collision, QuickLook, Severity, Track
from windlass.core.render import collision_note
from windlass.engine.bell import Bell
from windlass.engine.radar.merges import Collisions
from windlass.engine.records.messages import tell_agent
from windlass.engine.troubles import Troubles

EVERY = 1.0
"""Seconds between two looks of the tick, at least."""
SHARE = 9.0
"""The tick rests this many times as long as a look took: a tenth of a core, however large the trees."""
WATCHED = 60.0
"""Seconds for which the tick goes on looking after a person asked."""
FRESH, STALE = 2.0, 10.0
"""Seconds for which a look at a running agent is fresh for a person who asks, and for one who watches."""
PATIENCE = 5.0
"""Seconds that a person waits for looks; the other agents are shown as they were."""
AT_ONCE = 4
AT_WORK = (TaskState.ACTIVE, TaskState.WAITING, TaskState.LANDING)

Key = tuple[str, str]
"""A project and an agent."""
Stamp = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An agent whose work may land in a project."""

    agent: Agent
    project: Project
    task: Task
    run: Run | None
    stamp: Stamp
    """Facts about the agent; while they are the same, it has no news."""

    @property
    def key(self) -> Key:
        return self.project.id, self.agent.id

    @property
    def running(self) -> bool:
        return self.run is not None and self.run.live


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The last look at a target."""

    stamp: Stamp
    look: QuickLook | None
    """None, if the look failed."""
    at: float
    ticks: float
    """The time of the look on the monotonic clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Collisions and looks of one project or all, for a person."""

    collisions: Sequence[tuple[Project, Collision]]
    """The worst first."""
    looks: Sequence[tuple[Target, Seen | None]]
    """All compared agents, and the last look at each."""


class Radar:
    """Remembers the last look at each agent in this daemon's life. It looks only where somebody wants to know."""

    def __init__(self, ports: Ports, bell: Bell, troubles: Troubles) -> None:
        self.store = ports.store
        self.git = ports.git
        self.settings = ports.settings
        self.clock = ports.clock
        self.bell = bell
        self.troubles = troubles
        self.collisions = Collisions(ports.git)
        self._seen: dict[Key, Seen] = {}
        self._found: dict[str, list[Collision]] = {}
        self.ear = asyncio.Event()
        """Set when it is time for the next look."""
        self._alarm: asyncio.TimerHandle | None = None
        self._one_at_a_time = asyncio.Lock()
        self._rests_until = 0.0
        self._watched_until = 0.0
        self._read = -1

    async def tick(self) -> bool:
        """Look at one agent that has news, and judge its projects anew."""
        wanted = True
        if self.clock.monotonic() >= self._rests_until:
            async with self._one_at_a_time:
                wanted = await self._look_at_one()
        if wanted:
            self._wake()
        return False

    def _wake(self) -> None:
        """Set one alarm that wakes the tick when it has rested."""
        loop = asyncio.get_running_loop()
        if self._alarm is None or self._alarm.when() <= loop.time():
            rest = max(EVERY, self._rests_until - self.clock.monotonic())
            self._alarm = loop.call_later(rest, self.ear.set)

    async def _look_at_one(self) -> bool:
        """Look at the most due agent. Returns whether anyone wants to know."""
        last, projects = await self.store.read(lambda store: (store.last_seq(), store.projects()))
        watched = self.clock.monotonic() < self._watched_until
        wanted = {project.id for project in projects if watched or self._act(project) is not Act.SHOW}
        if not wanted or (last == self._read and not watched):
            return bool(wanted)
        targets = await self._targets()
        stale = STALE if watched else math.inf
        due = [each for each in targets if each.project.id in wanted and self._may_have_changed(each, stale)]
        due.sort(key=self._last_look)
        for target in due[:1]:
            await self._rest_after(target)
        await self._judge_all(self._forget(targets) | {each.project.id for each in due[:1]}, targets)
        self._read = -1 if len(due) > 1 else last
        return True

    async def picture(self, project: str = "", *, look: bool = True) -> Picture:
        """Show who is about to collide. With `look`, agents that may have changed are looked at first, for a while."""
        began = self.clock.monotonic()
        async with self._one_at_a_time:
            targets = await self._targets()
            gone = self._forget(targets)
            shown = [target for target in targets if project in ("", target.project.id)]
            if look:
                await self._look_at_many([each for each in shown if self._may_have_changed(each, FRESH)])
            await self._judge_all(gone | {each.project.id for each in shown if look}, targets)
            self._read, self._watched_until = -1, began + WATCHED
        self._wake()
        known = {each.project.id: each.project for each in shown}
        found = [(known[key], each) for key in known for each in self._found.get(key, ())]
        return Picture(
            collisions=sorted(found, key=lambda pair: foreseen.weight(pair[1])),
            looks=[(each, self._seen.get(each.key)) for each in shown],
        )

    async def unseen(self) -> frozenset[Key]:
        """The agents at work that were not looked at yet, in projects where the radar holds tasks."""
        targets = [target for target in await self.store.read(self._holding) if target.key not in self._seen]
        return frozenset([each.key for each in targets if await self.git.has_worktree(each.project, each.agent)])

    def _holding(self, store: Reading) -> list[Target]:
        """Every agent at work in a project where the radar holds tasks."""
        projects = {project.id for project in store.projects() if self._act(project) is Act.HOLD}
        return [target for target in _at_work(store) if target.project.id in projects] if projects else []

    def held(self, store: Reading, task: Task, unseen: Container[Key]) -> str:
        """Why the radar keeps a task from beginning beside the agents at work, some of them unseen; or nothing."""
        project = store.find(Project, task.project)
        if not task.paths or project is None or self._act(project) is not Act.HOLD:
            return ""
        for other in store.unfinished_tasks():
            agent = store.find(Agent, other.agent) if other.state in AT_WORK and other.agent != task.agent else None
            if agent is not None and agent.permissions is not Permissions.READ and project.id in agent.projects:
                paths = other.paths if other.project == project.id else ()
                files = self._files((project.id, agent.id), unseen)
                if reason := foreseen.hold_reason(task.paths, agent.id, paths, files):
                    return reason
        return ""

    def _files(self, agent: Key, unseen: Container[Key]) -> frozenset[str] | None:
        """The files that an agent has changed; None before the first look."""
        seen = self._seen.get(agent)
        if seen is None and agent in unseen:
            return None
        return seen.look.files if seen and seen.look else frozenset()

    async def _targets(self) -> list[Target]:
        found = await self.store.read(_at_work)
        return [each for each in found if await self.git.has_worktree(each.project, each.agent)]

    def _act(self, project: Project) -> Act:
        with self.troubles.noted("radar"):
            return self.settings.at(project.path).radar.act
        return Act.SHOW  # its file was never whole, so nothing is started there

    def _may_have_changed(self, target: Target, stale: float) -> bool:
        """Whether an agent has news, or runs silently and its last look is so many seconds old."""
        seen = self._seen.get(target.key)
        if seen is None or seen.stamp != target.stamp:
            return True
        return target.running and self.clock.monotonic() - seen.ticks >= stale

    async def _rest_after(self, target: Target) -> None:
        began = self.clock.monotonic()
        await self._look(target)
        ended = self.clock.monotonic()
        self._rests_until = ended + max(EVERY, SHARE * (ended - began))

    async def _look_at_many(self, targets: Sequence[Target]) -> None:
        """Look at several agents at once, the longest unseen first, until a person's patience is over."""
        turns = asyncio.Semaphore(AT_ONCE)
        until = self.clock.monotonic() + PATIENCE

        async def one(target: Target) -> None:
            async with turns:
                if self.clock.monotonic() < until:
                    await self._look(target)

        await asyncio.gather(*map(one, sorted(targets, key=self._last_look)))

    def _last_look(self, target: Target) -> float:
        seen = self._seen.get(target.key)
        return seen.ticks if seen else -1.0

    async def _look(self, target: Target) -> None:
        """Look at an agent; after a failed look, look again when it has news."""
        look: QuickLook | None = None
        try:
            look = await self.git.quick_look(target.project, target.agent)
        except NotFound:  # its worktree has gone since
            self._seen.pop(target.key, None)
            return
        except WindlassError as error:
            self.troubles.report("radar", error)
        now, ticks = self.clock.now(), self.clock.monotonic()
        self._seen[target.key] = Seen(stamp=target.stamp, look=look, at=now, ticks=ticks)

    def _forget(self, targets: Iterable[Target]) -> set[str]:
        """Forget agents that are not at work. Returns the projects to judge anew."""
        gone = self._seen.keys() - {target.key for target in targets}
        for key in gone:
            del self._seen[key]
        return {project for project, _ in gone}

    async def _judge_all(self, projects: Iterable[str], targets: Sequence[Target]) -> None:
        for key in projects:
            own = [target for target in targets if target.project.id == key]
            with self.troubles.noted("radar"):
                if own:
                    await self._judge(own[0].project, own)
                else:
                    self._found.pop(key, None)

    async def _judge(self, project: Project, targets: Sequence[Target]) -> None:
        tracks = [each for each in map(self._track, targets) if each]
        before, found = self._found.get(project.id, []), await self.collisions.among(project, tracks)
        self._found[project.id] = found
        act = self._act(project)
        told = await self._tell_all(project, targets, found) if act is Act.TELL else False
        if told or act is Act.HOLD or not _alike(before, found):
            self.bell.ring()

    def _track(self, target: Target) -> Track | None:
        seen = self._seen.get(target.key)
        if seen is None or seen.look is None:
            return None
        paths = target.task.paths if target.task.project == target.project.id else ()
        return Track(agent=target.agent.id, look=seen.look, paths=paths, at=seen.at)

    async def _tell_all(self, project: Project, targets: Sequence[Target], found: Sequence[Collision]) -> bool:
        """Tell those that are running of conflicts that they have not been told of; says whether there were any.

        Whoever is not running is left alone: it waits for a person, or its change is in line already.
        """
        running = {target.agent.id: target.task.id for target in targets if target.running}
        now = self.clock.now()
        notes = [
            Note(project, running[reader], collision, reader, now)
            for collision in found
            if collision.severity is Severity.CONFLICT
            for reader in collision.agents
            if reader in running
        ]
        return any([await self.store.write(note.tell) for note in notes])


@dataclass(frozen=True, slots=True)
class Note:
    """A message to one agent about one collision."""

    project: Project
    task: str
    collision: Collision
    reader: str
    now: float

    def tell(self, store: Writing) -> bool:
        """Within a transaction: tell the agent, and remember the files, unless it was told of all of them before."""
        other = next((agent for agent in self.collision.agents if agent != self.reader), self.project.main)
        key = f"{self.project.id}/radar/{self.reader}/{other}"
        told = set(store.position(key).splitlines())
        if told.issuperset(self.collision.files):
            return False
        store.set_position(key, "\n".join(sorted(told.union(self.collision.files))))
        words = collision_note(self.collision, other, self.project.main)
        tell_agent(store, self.reader, words, task=self.task, now=self.now)
        return True


def _at_work(store: Reading) -> list[Target]:
    """Every agent with a begun, unfinished task, in each project that it works in."""
    tasks = {task.agent: task for task in store.unfinished_tasks() if task.state in AT_WORK}
    runs = store.latest_runs(list(tasks))
    spoke = store.last_output([each.id for each in runs.values()])
    found = []
    for name, task in tasks.items():
        agent, run = store.find(Agent, name), runs.get(name)
        if agent is None or agent.retired_at is not None or agent.permissions is Permissions.READ:
            continue  # who only reads has no work of its own
        stamp = (task.id, task.state, run and (run.id, run.outcome, spoke.get(run.id)))
        projects = (store.find(Project, project) for project in agent.projects)
        found += [
            Target(agent=agent, project=project, task=task, run=run, stamp=stamp)
            for project in projects
            if project is not None
        ]
    return found


def _alike(before: Sequence[Collision], after: Sequence[Collision]) -> bool:
    """Whether two lists of collisions are the same but for their age."""
    return [replace(each, at=0.0) for each in before] == [replace(each, at=0.0) for each in after]
