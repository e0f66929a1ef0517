"""What a sandbox adds to a start, beside what bare bubblewrap adds to one."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from measure import CannotRun, Result

from windlass.core.nouns.agent import Agent
from windlass.core.nouns.project import Project
from windlass.core.ports.processes import Launch
from windlass.core.runs.sandbox import Sandbox, enclosure
from windlass.core.runs.workdir import Site
from windlass.core.settings.schema import SandboxSettings
from windlass.process.detached import DetachedProcesses
from windlass.process.starting.spawner import Spawner
from windlass.providers import load

WAIT = 60.0
"""Seconds for one start."""
BARE = ("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--unshare-pid")
"""A sandbox that hides nothing of the user's."""


def sandbox(*, quick: bool) -> Sequence[Result]:
    """From the order to the program's first words, with a sandbox and without; nothing where there is none."""
    return asyncio.run(_sandbox(11 if quick else 41))


async def _sandbox(rounds: int) -> Sequence[Result]:
    with tempfile.TemporaryDirectory(prefix="wl") as folder:
        place = Place(Path(folder))
        try:
            if problem := (await place.processes.sandbox_keeper()).problem:
                raise CannotRun(problem)
            samples = [await place.round() for _ in range(rounds)]
        finally:
            place.processes.close()
    bare, bare_kept, free, kept = (median(each) for each in zip(*samples, strict=True))
    what = f"what a sandbox adds to a start; bare bubblewrap adds {bare_kept - bare:.1f} ms"
    return [Result(name="sandbox", what=what, unit="ms", ours=kept - free, goal=10.0)]


class Place:
    """A home, a user's checkout and an agent's worktree, in which a program rings a bell."""

    def __init__(self, folder: Path) -> None:
        self.processes = DetachedProcesses(folder / "home/runs", "bench", Spawner())
        self.worktree = folder / "home/worktrees/otter"
        self.bell = self.worktree / "bell"
        self.numbers = itertools.count()
        for each in (self.worktree, folder / "home/door", folder / "repo"):
            each.mkdir(parents=True)
        os.mkfifo(self.bell)
        site = Site(
            Agent(name="otter", project="p", provider="command"),
            (Project(id="p", name="repo", path=str(folder / "repo"), main="main"),),
        )
        self.fence = enclosure(
            home=str(folder / "home"),
            site=site,
            provider=load().get("command"),
            places=(str(self.worktree),),
            readable=(),
            writable=(),
            settings=SandboxSettings(),
        )

    async def round(self) -> tuple[float, float, float, float]:
        """Milliseconds for each, turn by turn: bare, bare in bare bubblewrap, ours, ours in our sandbox."""
        ring = ("sh", "-c", f"echo >{self.bell}")
        reaches = ("--bind", str(self.worktree), str(self.worktree))
        return (
            await asyncio.to_thread(self.bare, ring),
            await asyncio.to_thread(self.bare, (*BARE, *reaches, *ring)),
            await self.ours(ring, None),
            await self.ours(ring, self.fence),
        )

    def bare(self, argv: Sequence[str]) -> float:
        began = time.perf_counter()
        with subprocess.Popen(argv, stdin=subprocess.DEVNULL):
            self.bell.read_bytes()
            return (time.perf_counter() - began) * 1000

    async def ours(self, argv: tuple[str, ...], fence: Sandbox | None) -> float:
        rung = asyncio.create_task(asyncio.to_thread(self.bell.read_bytes))
        run = f"r{next(self.numbers)}"
        began = time.perf_counter()
        launch = Launch(run=run, argv=argv, cwd=str(self.worktree), environment={}, sandbox=fence)
        await self.processes.start(launch)
        try:
            await asyncio.wait_for(asyncio.shield(rung), WAIT)
        except TimeoutError:
            os.close(os.open(self.bell, os.O_RDWR | os.O_NONBLOCK))  # lets go of the thread that waits for the bell
            raise
        return (time.perf_counter() - began) * 1000
