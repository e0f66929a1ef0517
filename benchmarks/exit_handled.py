"""From the death of a program to what we make of it, beside a bare pidfd."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from measure import Result
from whole import git, repository, whole

from windlass.core.nouns.run import Run
from windlass.core.ports.processes import Launch
from windlass.engine import Engine
from windlass.engine.projects.tasks import Order
from windlass.process.detached import DetachedProcesses
from windlass.process.starting.spawner import Spawner

WAIT = 30.0


def exit_handled(*, quick: bool) -> Sequence[Result]:
    """Two ways: until its exit code is known, and until the run is judged, with its worktree looked at and saved."""
    known, bare, judged, saved = asyncio.run(_measure(15 if quick else 41, 5 if quick else 9))
    return [
        Result(
            name="exit",
            what="a program ends → its exit code is known / a bare shell that writes it, and a pidfd",
            unit="ms",
            ours=known,
            floor=bare,
            goal=5.0,
        ),
        Result(
            name="exit-judged",
            what="a program ends → its tree is saved, its run judged, durably / the same, and a bare git snapshot",
            unit="ms",
            ours=judged,
            floor=saved,
            goal=5.0,
        ),
    ]


async def _measure(rounds: int, judgements: int) -> tuple[float, ...]:
    """Medians: exit code known, its floor, run judged, its floor."""
    with tempfile.TemporaryDirectory(prefix="wl") as folder:
        place = Path(folder)
        processes = DetachedProcesses(place / "runs", "bench", Spawner())
        known = [(await _known(processes, f"r{at}"), await _bare(place)) for at in range(rounds)]
        processes.close()
        source = repository(place / "repo", 10)
        git(place, "clone", "-q", str(source), str(place / "tree"))
        async with whole(place / "home") as engine:
            judged = [(await _judged(engine, source), await _saved(place)) for _ in range(judgements)]
    return tuple(median(each) for pairs in (known, judged) for each in zip(*pairs, strict=True))


async def _bare(place: Path) -> float:
    script = f"exec 2>/dev/null; sleep 600; echo $? >{place}/exit"
    child = await asyncio.to_thread(os.posix_spawn, "/bin/sh", ["sh", "-c", script], os.environ)
    descriptor, gone, loop = os.pidfd_open(child), asyncio.Event(), asyncio.get_running_loop()
    loop.add_reader(descriptor, gone.set)
    took = await _kill(await asyncio.to_thread(_program, child), gone)
    loop.remove_reader(descriptor)
    os.close(descriptor)
    await asyncio.to_thread(os.waitpid, child, 0)
    return took


async def _saved(place: Path) -> float:
    """The same, and then the least that keeps a tree: its files added, a commit, a ref."""
    took = await _bare(place)
    began = time.perf_counter()
    tree, number = place / "tree", str(time.perf_counter_ns())
    (tree / "new.txt").write_text(number)
    for command in (["add", "-A"], ["commit", "-qm", number], ["update-ref", f"refs/kept/{number}", "HEAD"]):
        await asyncio.to_thread(git, tree, "-c", "user.name=Bench", "-c", "user.email=bench@example.com", *command)
    return took + (time.perf_counter() - began) * 1000


async def _known(processes: DetachedProcesses, run: str) -> float:
    identity = await processes.start(Launch(run=run, argv=("sleep", "600"), cwd="/", environment={}))
    gone = asyncio.Event()
    looks: set[asyncio.Task[None]] = set()

    async def look() -> None:
        if await processes.exit_code(run) is not None and not await processes.alive(identity):
            gone.set()

    processes.follow(run, identity, lambda _: looks.add(asyncio.create_task(look())))
    took = await _kill(await asyncio.to_thread(_program, identity.pid), gone)
    processes.forget(run)
    return took


async def _judged(engine: Engine, source: Path) -> float:
    ear = engine.bell.ear()
    order = Order(path=str(source), title="Sleep", provider="command", options={"command": "exec sleep 600"})
    _, agent = await engine.tasks.add(order)
    while not ((run := await _run(engine, agent.id)) and run.identity):
        await _rung(ear)
    program = await asyncio.to_thread(_program, run.identity.pid)
    began = time.perf_counter()
    os.kill(program, signal.SIGKILL)
    while (run := await _run(engine, agent.id)) is None or run.live:
        await _rung(ear)
    return (time.perf_counter() - began) * 1000


async def _run(engine: Engine, agent: str) -> Run | None:
    """The first run: what follows it is not of interest here."""
    runs = await engine.ports.store.read(lambda store: store.runs_of(agent))
    return runs[0] if runs else None


async def _rung(ear: asyncio.Event) -> None:
    await asyncio.wait_for(ear.wait(), WAIT)
    ear.clear()


async def _kill(pid: int, gone: asyncio.Event) -> float:
    """Milliseconds from the signal to the moment when we know."""
    began = time.perf_counter()
    os.kill(pid, signal.SIGKILL)
    await asyncio.wait_for(gone.wait(), WAIT)
    return (time.perf_counter() - began) * 1000


def _program(shim: int) -> int:
    """The `sleep` somewhere below a shim, once it is there: a sandbox may stand in between."""
    deadline = time.monotonic() + WAIT
    while time.monotonic() < deadline:
        for pid in _below(shim):
            if Path(f"/proc/{pid}/comm").read_text() == "sleep\n":
                return pid
        time.sleep(0.001)
    raise TimeoutError(f"The program of process {shim} did not begin.")


def _below(pid: int) -> Iterator[int]:
    for child in map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
        yield child
        yield from _below(child)
