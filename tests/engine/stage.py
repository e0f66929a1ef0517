"""A stage for stories: the engine on the memory store, fake processes and a clock we set; git and checks are real."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import patience
from fakes import FakeProcesses
from fakes.store import MemoryStore
from windlass.checks.command import CommandChecks
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Change
from windlass.core.nouns.run import Run
from windlass.core.nouns.task import Task
from windlass.core.ports import Ports
from windlass.core.runs.provider import Provider
from windlass.core.settings.schema import CheckSettings, Limits, Settings
from windlass.engine import Engine
from windlass.engine.projects.tasks import Order
from windlass.git import HubGit
from windlass.library import prompt_blocks
from windlass.library.agent_files import RepositoryLibrary
from windlass.process.sandbox.bubblewrap import Bubblewrap
from windlass.process.shell import CommandShell
from windlass.process.starting.spawner import Spawner
from windlass.providers import FoundProviders, load
from windlass.store.sqlite import SqliteStore
from windlass.workdir import RunFolders
from windlass.workdir.chatfile import ChatFiles
from windlass.workdir.setup import WorktreeSetup

HOME_ID = f"home-{os.getpid()}"
"""Stages run side by side, and none may end another's processes."""
DONE = '{"status": "done", "result": "Fixed."}'


class SetClock:
    """Time that passes only when a story says so."""

    def __init__(self) -> None:
        self.time = 1_000.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time


class SetSettings:
    """Settings that a story can change at any moment."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def at(self, path: str, /) -> Settings:
        del path
        return self.settings

    def check(self, path: str, /) -> None:
        """There is no file to be broken."""


CHOOSY = Provider(
    name="choosy",
    summary="takes a model, and who it is apart",
    argv=lambda start: ("choosy", "--system", start.system),
    models=True,
    system=True,
    reads=True,
    resumes=True,
)


class Stage:
    """One project, one engine, and the hands of its agents."""

    def __init__(
        self, repo: Path, home: Path, *, checks: str = "true", store: MemoryStore | SqliteStore | None = None
    ) -> None:
        self.repo = repo
        self.home = home
        self.clock = SetClock()
        self.numbers = itertools.count(1)
        self.settings = SetSettings(Settings(checks=CheckSettings(command=checks), limits=Limits(returns=2)))
        self.store = store or MemoryStore(self.clock)
        self.processes = FakeProcesses(monotonic=self.clock.monotonic)
        self.engine = self.build()

    def build(self) -> Engine:
        """A new engine on the same facts, as after a restart."""
        git = HubGit(self.home, environment=os.environ, now=self.clock.now)
        shell = CommandShell(Bubblewrap(), Spawner())
        return Engine(
            Ports(
                store=self.store,
                git=git,
                processes=self.processes,
                workdirs=RunFolders(self.home),
                chats=ChatFiles(),
                checks=CommandChecks(self.home, HOME_ID, trees=git.trees, shell=shell, environment=os.environ),
                providers=load(),
                settings=self.settings,
                clock=self.clock,
                random=random.Random(7).random,
                uuid=lambda: f"project-{next(self.numbers)}",
                library=RepositoryLibrary(prompt_blocks()),
                setups=WorktreeSetup(HOME_ID, shell=shell, environment=os.environ),
                home=str(self.home),
            )
        )

    def add(self, provider: Provider) -> None:
        """A provider more."""
        known = self.engine.ports.providers
        assert isinstance(known, FoundProviders)
        known.providers = {**known.providers, provider.name: provider}

    async def order(self, title: str = "Fix it", command: str = "claude-like") -> str:
        """Add a task for a command agent; returns the agent's name."""
        order = Order(path=str(self.repo), title=title, provider="command", options={"command": command})
        _, agent = await self.engine.tasks.add(order)
        return agent.id

    async def move(self, *, troubled: bool = False) -> None:
        """Let every tick run until nothing changes any more, and see that nothing went wrong, or that something did."""
        seq = -1
        while seq != (seq := await self.store.read(lambda store: store.last_seq())):
            await asyncio.sleep(0)  # what the kernel has told is heard
            for rhythm in self.engine.ticks.values():
                await rhythm.tick()
            await self.engine.settle()
        assert bool(self.engine.troubles.all()) == troubled

    async def restart(self) -> None:
        """The daemon dies and another takes over; processes live on."""
        await self.engine.close()
        self.engine = self.build()

    async def forget_identity(self, run: Run) -> None:
        """Make it as if the daemon had died between starting the process and recording it."""
        await self.store.write(lambda store: store.record("run.starting", run.id, replace(run, identity=None)))

    async def run_of(self, name: str) -> Run:
        runs = await self.store.read(lambda store: store.latest_runs([name]))
        return runs[name]

    async def task_of(self, name: str) -> Task:
        task = await self.store.read(lambda store: store.task_of(name))
        assert task is not None
        return task

    async def change_of(self, name: str) -> Change:
        task = await self.task_of(name)
        change = await self.store.read(lambda store: store.change_of_task(task.id))
        assert change is not None
        return change

    async def agent(self, name: str) -> Agent:
        agent = await self.store.read(lambda store: store.find(Agent, name))
        assert agent is not None
        return agent

    async def kinds(self, subject: str) -> list[str]:
        events = await self.store.read(lambda store: store.events(after=0, limit=10_000))
        return [event.kind for event in events if event.subject == subject]

    def prompt_of(self, run: Run) -> str:
        return (self.home / "runs" / run.id / "prompt.md").read_text()

    # ── the agent's own hands ──

    async def worktree(self, name: str) -> Path:
        run = await self.run_of(name)
        return Path(self.processes.started[run.id].launch.cwd)

    async def commit(self, name: str, path: str, text: str) -> None:
        """Write a file in an agent's worktree and commit it there, with the environment that the agent has."""
        tree = await self.worktree(name)
        launch = self.processes.started[(await self.run_of(name)).id].launch
        commit(tree, path, text, os.environ | dict(launch.environment))

    async def signal(self, name: str, text: str = DONE) -> None:
        launch = self.processes.started[(await self.run_of(name)).id].launch
        _write(launch.environment["WINDLASS_SIGNAL"], text)

    async def exit(self, name: str, code: int = 0) -> None:
        self.processes.exit((await self.run_of(name)).id, code)

    async def finish(self, name: str, path: str, text: str) -> None:
        """Commit, say done and leave, as a good agent does."""
        await self.commit(name, path, text)
        await self.signal(name)
        await self.exit(name)

    def limit(self, **limits: int) -> None:
        self.settings.settings = replace(
            self.settings.settings, limits=replace(self.settings.settings.limits, **limits)
        )

    def check_with(self, command: str) -> None:
        self.settings.settings = replace(self.settings.settings, checks=CheckSettings(command=command))


def commit(tree: Path, path: str, text: str, environment: dict[str, str]) -> None:
    (tree / path).write_text(text)
    for command in (["add", "-A"], ["commit", "-q", "-m", f"Write {path}"]):
        subprocess.run(["git", *command], cwd=tree, check=True, env=environment)


def _write(path: str, text: str) -> None:
    Path(path).write_text(text)


def play(story: Callable[[], Awaitable[None]]) -> None:
    """Run a story, but not for ever."""

    async def limited() -> None:
        try:
            async with asyncio.timeout(patience.seconds(60)):
                await story()
        finally:
            await _end_the_rest()

    asyncio.run(limited())


async def _end_the_rest() -> None:
    """End what a story has left. Not what asyncio began itself: a program that is starting waits for that for ever."""
    rest = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    ours = [task for task in rest if "_connect_pipes" not in repr(task.get_coro())]
    for task in ours:
        task.cancel()
    if ours:
        await asyncio.wait(ours)
