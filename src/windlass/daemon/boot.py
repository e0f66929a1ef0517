"""The only place that builds adapters."""

from __future__ import annotations

import os
import random
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from windlass import __version__
from windlass.checks.command import CommandChecks
from windlass.checks.guess import guess
from windlass.core.ports import Ports
from windlass.daemon.clock import SystemClock
from windlass.daemon.crash_points import Steps, stepped
from windlass.daemon.doctor import Doctor
from windlass.daemon.lifecycle import STORE, TRACES
from windlass.daemon.serving.mcp_loader import LateTools
from windlass.daemon.serving.server import Identify
from windlass.daemon.serving.shares import raise_file_limit
from windlass.daemon.serving.tokens import Tokens
from windlass.daemon.settings import SettingsFileEditor, SettingsFiles
from windlass.engine import Engine
from windlass.git import HubGit
from windlass.library import prompt_blocks
from windlass.library.agent_files import RepositoryLibrary
from windlass.process.caller_run import CallerTrace
from windlass.process.detached import DetachedProcesses
from windlass.process.sandbox.bubblewrap import Bubblewrap
from windlass.process.shell import CommandShell, sweep
from windlass.process.stamp import refuse_inside_a_run
from windlass.process.starting.spawner import Spawner
from windlass.providers import load
from windlass.providers.presence import look
from windlass.store.copies import refuse_lost
from windlass.store.sqlite import SqliteStore
from windlass.web.authentication import SocketAuthenticator, TokenAuthenticator
from windlass.web.request import AppContext
from windlass.workdir import RunFolders
from windlass.workdir.chatfile import ChatFiles
from windlass.workdir.setup import WorktreeSetup


@dataclass(frozen=True, slots=True)
class Program:
    """The whole program, ready to move."""

    engine: Engine
    context: AppContext
    authenticator: SocketAuthenticator
    port_authenticator: TokenAuthenticator
    tools: LateTools
    settings: SettingsFiles
    store: SqliteStore
    identify: Identify

    def fall_silent(self) -> None:
        """Disconnect all subscribers."""
        self.engine.bell.fall_silent()
        self.tools.leave()


@asynccontextmanager
async def build(home: Path, leave: Callable[[], None]) -> AsyncIterator[Program]:
    """Build every object once; close them in the order that loses nothing."""
    clock = SystemClock()
    step = Steps(os.environ)
    providers = load()
    settings = SettingsFiles(home, accept=providers.accept)
    providers.described = lambda: settings.at("").providers
    providers.models = lambda: settings.at("").models
    providers.environment = os.environ
    refuse_lost(home / STORE, [home / name for name in TRACES])
    store = SqliteStore(str(home / STORE), clock)
    spawner = Spawner(files=raise_file_limit())
    processes = await _processes(home, store, spawner)
    git = HubGit(home, environment=os.environ, now=clock.now, step=step)
    await git.sweep()
    tokens = Tokens(home)
    shell = CommandShell(Bubblewrap(), spawner)
    ports = Ports(
        store=store,
        git=git,
        processes=processes,
        workdirs=RunFolders(home),
        chats=ChatFiles(processes.listen),
        checks=CommandChecks(home, store.home_id, trees=git.trees, shell=shell, environment=os.environ),
        providers=providers,
        settings=settings,
        clock=clock,
        random=random.random,
        uuid=lambda: str(uuid.uuid4()),
        library=RepositoryLibrary(prompt_blocks()),
        setups=WorktreeSetup(store.home_id, shell=shell, environment=os.environ),
        home=str(home),
        pid=os.getpid(),
        processors=len(os.sched_getaffinity(0)),
        token=tokens.of,
    )
    engine = Engine(stepped(ports, step) if step.wanted else ports)
    doctor = Doctor(engine, home)
    context = AppContext(
        version=__version__,
        pid=os.getpid(),
        started=clock.monotonic(),
        home=str(home),
        editor=SettingsFileEditor(settings, guess),
        presences=partial(look, providers.all, os.environ),
        examine=doctor.examine,
        check=doctor.check,
        leave=leave,
    )
    tools = LateTools(engine)
    identify = CallerTrace(processes.leaders).identify
    try:
        authenticators = SocketAuthenticator(), TokenAuthenticator(tokens.owner)
        yield Program(engine, context, *authenticators, tools, settings, store, identify)
    finally:
        await tools.close()
        await engine.close()
        for part in (git, processes, spawner):
            part.close()
        await store.close()


async def _processes(home: Path, store: SqliteStore, spawner: Spawner) -> DetachedProcesses:
    """The processes of runs; those of an earlier daemon are known before anybody can call, and its checks are ended."""
    refuse_inside_a_run(store.home_id)
    processes = DetachedProcesses(home / "runs", store.home_id, spawner)
    for run in await store.read(lambda reading: reading.live_runs()):
        if run.identity:
            processes.know(run.id, run.identity)
    await sweep(store.home_id)
    return processes
