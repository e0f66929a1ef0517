"""From an order to the first words of the agent, beside a bare shared clone of the same hub and an exec."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from measure import Result
from whole import git, repository, whole

from windlass.engine import Engine
from windlass.engine.projects.tasks import Order

ROUNDS, FEWEST = 5, 2
WAIT = 300.0
"""Seconds for one start."""
PATIENCE = 60.0
"""Seconds. A slow disk takes half a minute for one bare clone of 50,000 files; then fewer rounds must do."""


def start_agent(*, quick: bool) -> Sequence[Result]:
    """Cold, with 5,000 and 50,000 files. A large checkout should gain from several workers."""
    sizes = ((5_000, 1.1),) if quick else ((5_000, 1.1), (50_000, 0.8))
    return [asyncio.run(_start(files, goal)) for files, goal in sizes]


async def _start(files: int, goal: float) -> Result:
    with tempfile.TemporaryDirectory(prefix="wl") as folder:
        place = Path(folder)
        bell = place / "bell"
        os.mkfifo(bell)
        source = repository(place / "repo", files)
        async with whole(place / "home") as engine:
            await _ours(engine, source, bell)
            hub = next((place / "home" / "hubs").iterdir())
            began, pairs = time.monotonic(), list[tuple[float, float]]()
            while len(pairs) < FEWEST or (len(pairs) < ROUNDS and time.monotonic() - began < PATIENCE):
                bare = await asyncio.to_thread(_floor, hub, place / "clone", bell)
                pairs.append((bare, await _ours(engine, source, bell)))
    bare, ours = (median(each) for each in zip(*pairs, strict=True))
    rounds = "" if len(pairs) == ROUNDS else f" ({len(pairs)} rounds)"
    what = f"order → the agent's first words, {files} files / git clone --shared + exec{rounds}"
    return Result(name=f"start-{files // 1000}k", what=what, unit="ms", ours=ours, floor=bare, goal=goal)


async def _ours(engine: Engine, source: Path, bell: Path) -> float:
    """The agent rings, and then stays: its end is not measured here."""
    order = Order(
        path=str(source), title="Ring", provider="command", options={"command": f"echo >{bell}; exec sleep 600"}
    )
    rung = asyncio.create_task(asyncio.to_thread(bell.read_bytes))
    began = time.perf_counter()
    await engine.tasks.add(order)
    await _wait(rung, bell)
    return (time.perf_counter() - began) * 1000


async def _wait(rung: asyncio.Task[bytes], bell: Path) -> None:
    try:
        await asyncio.wait_for(asyncio.shield(rung), WAIT)
    except TimeoutError:
        os.close(os.open(bell, os.O_RDWR | os.O_NONBLOCK))  # lets go of the thread that waits for the bell
        raise


def _floor(hub: Path, clone: Path, bell: Path) -> float:
    began = time.perf_counter()
    git(hub, "clone", "-q", "--shared", "--branch", "main", str(hub), str(clone))
    child = os.posix_spawn("/bin/sh", ["sh", "-c", f"echo >{bell}"], os.environ)
    bell.read_bytes()
    took = (time.perf_counter() - began) * 1000
    os.waitpid(child, 0)
    shutil.rmtree(clone)
    return took
