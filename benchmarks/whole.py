"""A whole Windlass inside the benchmark, and repositories for it to work on."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, nullcontext, suppress
from pathlib import Path

from windlass.core.nouns.run import Run
from windlass.daemon.boot import Program, build
from windlass.daemon.lifecycle import hang_up, listen, prepare_home
from windlass.daemon.loops import keep_all
from windlass.daemon.serving.server import DaemonServer
from windlass.daemon.serving.shares import Shares, most_callers
from windlass.engine import Engine
from windlass.web.app import build as build_app

SETTINGS = (
    '[limits]\nruns = 10000\nretries = 0\nreminders = 0\n\n[checks]\ncommand = "true"\n\n[sandbox]\nmode = "off"\n'
)


@asynccontextmanager
async def whole(home: Path, *, moving: bool = True, serving: bool = False) -> AsyncIterator[Engine]:
    """The engine with every real adapter; with its ticks, if it shall move by itself. What it started is killed.

    If it serves, it can be asked on its socket, too.
    """
    prepare_home(home)
    (home / "config.toml").write_text(SETTINGS)
    async with build(home, lambda: None) as building:
        ticks = asyncio.create_task(keep_all(building.engine)) if moving else None
        try:
            async with _served(home, building) if serving else nullcontext():
                yield building.engine
        finally:
            if ticks:
                ticks.cancel()
            live = await building.engine.ports.store.read(lambda store: store.live_runs())
    _kill(live)


@asynccontextmanager
async def _served(home: Path, building: Program) -> AsyncIterator[None]:
    app = build_app(building.engine, building.context, building.authenticator, building.tools)
    server, leaving = DaemonServer(app, listen(home), building.identify, Shares(most_callers())), asyncio.Event()
    task = asyncio.create_task(server.run_until(leaving, building.engine.bell.fall_silent))
    try:
        yield
    finally:
        hang_up(home)
        leaving.set()
        await task


def _kill(runs: Iterable[Run]) -> None:
    for run in runs:
        if run.identity:
            with suppress(ProcessLookupError):
                os.killpg(run.identity.pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(run.identity.pid, 0)


def repository(path: Path, files: int) -> Path:
    """A repository with so many small files, of which none is checked out: nothing here looks at them."""
    path.mkdir(parents=True)
    git(path, "init", "-q", "-b", "main")
    git(path, "config", "user.name", "Bench")
    git(path, "config", "user.email", "bench@example.com")
    git(path, "fast-import", "--quiet", stdin=_import(files))
    return path


def _import(files: int) -> bytes:
    lines = ["commit refs/heads/main", "committer Bench <bench@example.com> 1700000000 +0000", "data 5", "Begin"]
    for number in range(files):
        text = f"{number}\n" * 20
        lines += [f"M 100644 inline d{number % 50}/e{number % 500}/f{number}.txt", f"data {len(text)}", text]
    return ("\n".join(lines) + "\n").encode()


def git(path: Path, *arguments: str, stdin: bytes = b"") -> str:
    """What git says."""
    ran = subprocess.run(["git", *arguments], cwd=path, input=stdin, check=True, capture_output=True)
    return ran.stdout.decode().strip()
