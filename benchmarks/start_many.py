"""Two hundred programs started at once, beside bare `posix_spawn` of the same shim."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median

from measure import Result

from windlass.core.ports.processes import Launch
from windlass.process.detached import DetachedProcesses
from windlass.process.proc import words_of
from windlass.process.starting.spawner import Spawner

MANY = 200


def start_many(*, quick: bool) -> Sequence[Result]:
    """Each must succeed, and tell its exit code."""
    ours, floor, failed = asyncio.run(_start_many(3 if quick else 7))
    return [
        Result(
            name="starts",
            what=f"{MANY} programs started at once, for each / posix_spawn of the same shim",
            unit="ms",
            ours=ours,
            floor=floor,
            goal=2.0,
        ),
        Result(name="starts-failed", what=f"of {MANY} starts at once, those that failed", unit="", ours=failed, goal=0),
    ]


async def _start_many(rounds: int) -> tuple[float, float, int]:
    """Milliseconds for one start, ours and bare, and how many of ours did not end with 0."""
    with tempfile.TemporaryDirectory(prefix="wl") as folder:
        processes = DetachedProcesses(Path(folder) / "runs", "bench", Spawner())
        try:
            shim = await _shim(processes)
            triples = [
                (_floor(shim, Path(folder) / f"bare{at}"), *await _ours(processes, f"o{at}")) for at in range(rounds)
            ]
        finally:
            processes.close()
    bare, ours, failures = zip(*triples, strict=True)
    return median(ours), median(bare), sum(failures)


async def _shim(processes: DetachedProcesses) -> list[str]:
    """The words that our program is started with, up to its folder: what the kernel says of a living one."""
    launch = Launch(run="model", argv=("sleep", "600"), cwd="/", environment={})
    identity = await processes.start(launch)
    words = await asyncio.to_thread(_words, identity.pid)
    await processes.stop("model", identity, grace=0)
    return words[:4]


def _words(pid: int) -> list[str]:
    while "600" not in (words := words_of(pid)):
        time.sleep(0.01)
    return words


async def _ours(processes: DetachedProcesses, name: str) -> tuple[float, int]:
    runs = [f"{name}-{number}" for number in range(MANY)]
    began = time.perf_counter()
    started = await asyncio.gather(
        *(processes.start(Launch(run=run, argv=("true",), cwd="/", environment={})) for run in runs),
        return_exceptions=True,
    )
    took = (time.perf_counter() - began) * 1000 / MANY
    ended = [asyncio.Event() for _ in runs]
    looks: set[asyncio.Task[None]] = set()
    for run, identity, gone in zip(runs, started, ended, strict=True):
        if isinstance(identity, BaseException):
            gone.set()
            continue
        processes.follow(run, identity, partial(_told, processes, gone, looks))
    await asyncio.wait_for(asyncio.gather(*(gone.wait() for gone in ended)), 60)
    for run in runs:
        processes.forget(run)
    return took, sum([await processes.exit_code(run) != 0 for run in runs])


def _told(processes: DetachedProcesses, gone: asyncio.Event, looks: set[asyncio.Task[None]], run: str) -> None:
    looks.add(asyncio.create_task(_look(processes, gone, run)))


async def _look(processes: DetachedProcesses, gone: asyncio.Event, run: str) -> None:
    if await processes.exit_code(run) is not None:
        gone.set()


def _floor(shim: list[str], folder: Path) -> float:
    """The same command with the same streams, one after the other; and no more than that."""
    places = [folder / str(number) for number in range(MANY)]
    for place in places:
        place.mkdir(parents=True)
    began = time.perf_counter()
    children = [_spawn([*shim, str(place), "/", "/bin/true"], place / "output") for place in places]
    took = (time.perf_counter() - began) * 1000 / MANY
    for child in children:
        os.waitpid(child, 0)
    return took


def _spawn(argv: list[str], output: Path) -> int:
    return os.posix_spawn(
        argv[0],
        argv,
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(output), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )
