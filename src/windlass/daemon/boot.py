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
from windlass.daemon.serving.mcp_loader import LateTools
from windlass.daemon.serving.tokens import Tokens
from windlass.daemon.settings import SettingsFileEditor, SettingsFiles
from windlass.engine import Engine
from windlass.git import HubGit
from windlass.library import prompt_blocks
from windlass.library.agent_files import RepositoryLibrary
from windlass.process.caller_run import trace
from windlass.process.detached import DetachedProcesses
from windlass.process.sandbox.bubblewrap import Bubblewrap
from windlass.process.shell import run_shell, sweep
from windlass.providers import load
from windlass.providers.presence import look
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
    store = SqliteStore(str(home / "windlass.db"), clock)
    await sweep(store.home_id, "check-")
    processes = DetachedProcesses(home / "runs", store.home_id)
    git = HubGit(home, environment=os.environ, now=clock.now, step=step)
    await git.sweep()
    tokens = Tokens(home)
    ports = Ports(
        store=store,
        git=git,
        processes=processes,
        workdirs=RunFolders(home),
        chats=ChatFiles(processes.listen),
        checks=CommandChecks(home, store.home_id, trees=git.trees, shell=run_shell, environment=os.environ),
        providers=providers,
        settings=settings,
        clock=clock,
        random=random.random,
        uuid=lambda: str(uuid.uuid4()),
        library=RepositoryLibrary(prompt_blocks()),
        setups=WorktreeSetup(store.home_id, shell=run_shell, wrap=Bubblewrap().wrapped, environment=os.environ),
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
    authenticator = SocketAuthenticator(os.getuid(), partial(trace, home_id=store.home_id))
    tools = LateTools(engine)
    try:
        yield Program(engine, context, authenticator, TokenAuthenticator(tokens.owner), tools, settings)
    finally:
        await tools.close()
        await engine.close()
        processes.close()
        await store.close()
