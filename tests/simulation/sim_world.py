"""A whole home in memory: one project, one daemon at a time, agents and a person; moved act by act."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from sim_life import DRIVER, Life, Strain, lived
from sim_loop import SimClock, SimLoop
from sim_stands import HOME, OTHER, PROVIDERS, REPOSITORY, SetSettings, SimSetups, agent_files
from sim_watch import WatchedChecks, WatchedGit, WatchedProcesses, Witness

from fakes import FakeChats, FakeProcess, FakeRepository, FakeWorkdirs, FakeWorktree
from fakes.store import MemoryReading, MemoryStore
from windlass.core.errors import WindlassError
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Run
from windlass.core.ports import Ports
from windlass.daemon.loops import keep_all
from windlass.engine import Engine

Verb = Callable[[Engine], Coroutine[Any, Any, Any]]
EXPECTED = ("says no.", "has no room for checks.", "no such folder")
"""How the troubles end that the world itself makes."""


@dataclass(frozen=True)
class Place:
    """One worktree of an agent, and the repository that it is for."""

    path: str
    tree: FakeWorktree
    repository: FakeRepository


class World:
    """Everything there is, and time. The same chance gives the same history."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.loop = SimLoop()
        self.clock = SimClock(self.loop)
        self.strain = Strain(random.Random(chance.random()))
        self.store = MemoryStore(self.clock)
        self.witness = Witness(MemoryReading(self.store._tables))
        self.git = WatchedGit(HOME, now=self.clock.now, pause=self._pause)
        self.git.witness = self.witness
        first = {"README": "hello\n", "a": "one\n"}
        self.repositories = [self.git.repository(each, first) for each in (REPOSITORY, OTHER)]
        self.processes = WatchedProcesses(self.witness, monotonic=self.clock.monotonic)
        self.checks = WatchedChecks(self.git, self.witness, self.strain.chance)
        self.chats = FakeChats()
        self.workdirs = FakeWorkdirs(HOME, exists=self.git.worktrees.__contains__)
        if chance.random() < 0.15:
            self.workdirs.mirrored.add(REPOSITORY)
        self.settings = SetSettings(self.witness)
        self.settings.prepare_with("")
        self.setups = SimSetups(self.strain.chance)
        self.life: Life | None = None
        self.engine: Engine | None = None
        self.calls: set[asyncio.Task[Any]] = set()
        self.counter = self.projects = 0
        self.boot()

    # ── the daemon ──

    def boot(self) -> None:
        """Start a daemon on what there is."""
        self.life = Life(self.strain)
        self.engine = Engine(lived(self._ports(), self.life))
        self.moving = self.loop.create_task(keep_all(self.engine), name="keep")

    def _ports(self) -> Ports:
        names = random.Random(self.strain.chance.random())
        return Ports(
            store=self.store,
            git=self.git,
            processes=self.processes,
            workdirs=self.workdirs,
            chats=self.chats,
            checks=self.checks,
            providers=PROVIDERS,
            settings=self.settings,
            clock=self.clock,
            random=names.random,
            uuid=self._uuid,
            library=agent_files(),
            setups=self.setups,
            home=HOME,
        )

    def _uuid(self) -> str:
        self.projects += 1
        return f"project-{self.projects}"

    async def _pause(self, name: str) -> None:
        if self.life is not None:
            await self.life.point(f"git.{name}")

    def kill(self) -> None:
        """Let the daemon die where it stands."""
        self._drive(self._kill())

    async def _kill(self) -> None:
        if self.life is not None:
            self.life.end("from outside")

    def leave(self) -> None:
        """Let the daemon leave in good order."""
        self._drive(self._leave())

    async def _leave(self) -> None:
        if self.engine is None or self.life is None:
            return
        leaving = asyncio.create_task(self._close(self.engine), name="leave")
        await asyncio.wait([leaving])
        self.life.end("it left")

    async def _close(self, engine: Engine) -> None:
        self.moving.cancel()
        await asyncio.gather(self.moving, return_exceptions=True)
        await engine.close()

    # ── time ──

    def turn(self, turns: int) -> None:
        """Let everything go on for some turns of the loop, wherever that leads."""
        self._drive(self._turns(turns))

    def wait(self, seconds: float) -> None:
        """Let some time pass."""
        self._drive(asyncio.sleep(seconds))

    def turn_with(self, work: Coroutine[Any, Any, None]) -> None:
        """Let everything go on until some work of the test's own is done."""
        self._drive(work)

    async def _turns(self, turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
            if self.loop.idle:
                return

    def _drive(self, work: Coroutine[Any, Any, None]) -> None:
        self.loop.run_until_complete(self.loop.create_task(work, name=DRIVER))
        if self.life is not None and self.life.over:
            self.loop.run_until_complete(self.loop.create_task(self._bury(), name=DRIVER))
        self._look_at_the_daemon()

    async def _bury(self) -> None:
        """Clear away what a dead daemon has left in this process; the world goes on without it."""
        own = asyncio.current_task()
        while left := [task for task in self.loop.tasks() if task is not own]:
            for each in left:
                each.cancel()
            await asyncio.sleep(0)
        self.processes.deaf()
        self.calls.clear()
        self.life = self.engine = None

    def _look_at_the_daemon(self) -> None:
        """A daemon that lives ticks, and meets no trouble but what the world makes."""
        if self.engine is None:
            return
        if self.moving.done():
            self.witness.object(f"the ticks have ended: {self.moving}")
        for each in self.engine.troubles.all():
            if not each.message.removesuffix(")").endswith(EXPECTED):
                self.witness.object(f"trouble in {each.tick}: {each.message}")

    def close(self) -> None:
        """Leave nothing behind."""
        if self.life is not None:
            self.kill()
        self.loop.close()

    # ── what people ask of the daemon ──

    def call(self, name: str, work: Verb, then: Callable[[Any], None]) -> None:
        """Ask the daemon, which may refuse or die meanwhile."""
        if self.engine is not None:
            task = self.loop.create_task(self._called(self.engine, work, then), name=f"call {name}")
            self.calls.add(task)
            task.add_done_callback(self._answered)

    async def _called(self, engine: Engine, work: Verb, then: Callable[[Any], None]) -> None:
        try:
            then(await work(engine))
        except WindlassError as error:
            if not str(error).strip():
                self.witness.object(f"I11: an error without words: {error!r}")

    def _answered(self, task: asyncio.Task[Any]) -> None:
        self.calls.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self.witness.object(f"I11: {task.get_name()} failed with {error!r}")

    # ── who is there ──

    @property
    def now(self) -> MemoryReading:
        """The store, as it is."""
        return self.witness.store

    def living(self) -> list[FakeProcess]:
        return [each for each in self.processes.started.values() if each.alive]

    def places(self, process: FakeProcess) -> list[Place]:
        """Where it works: its only worktree, or several that its folder leads to; those that are there."""
        folder = process.launch.cwd
        paths = self.workdirs.gathered.get(folder, {"": folder}).values()
        return [
            Place(path, self.git.worktrees[path], self._repository(path))
            for path in paths
            if path in self.git.worktrees
        ]

    def _repository(self, worktree: str) -> FakeRepository:
        project = self.now.find(Project, worktree.split("/")[-2])
        assert project is not None
        return self.git.repositories[project.path]

    def run_of(self, process: FakeProcess) -> Run:
        run = self.now.find(Run, process.launch.run)
        assert run is not None
        return run

    def number(self) -> int:
        self.counter += 1
        return self.counter

    @property
    def journal(self) -> str:
        """A name for the whole history."""
        events = self.store._tables.events
        return hashlib.sha256(repr([(event.seq, event.time, event.chain) for event in events]).encode()).hexdigest()
