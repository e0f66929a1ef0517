"""What one operation asks of the store, of git and of the processor: counted inside a whole Windlass, not timed."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure import CannotRun, Result
from outside import Outside, wait_for
from whole import git, repository, whole

from windlass.git import program
from windlass.store.sqlite import SqliteStore

LIVE, FEW = 100, 50
SECONDS = 10
COUNTED = ((SqliteStore, "read", "reads"), (SqliteStore, "scan", "reads"), (SqliteStore, "write", "writes"))
SPAWN = (program, "_spawn", "git")
CALM = 8
"""Looks, a tenth of a second apart, at which nothing was asked: then an operation is over."""
LONGEST = 1200
"""Looks until it is given up."""
COMMITS = "date +%s%N > new-$$.txt && git add . && git commit -qm New"
FLOW = "agents:\n  helper:\n    command: 'true'\nkickoff: '@helper go'\n"


@dataclass(frozen=True, slots=True)
class Operation:
    """One that is counted, with its goals, and the counts that .ci/run lets no change exceed."""

    name: str
    what: str
    goals: tuple[float, float, float, float]
    """Reads, writes, git processes, milliseconds on a processor."""
    most: tuple[int, int, int]
    """Writes and git processes as they are, and reads with room for two ticks that come together or apart; lower them
    when they fall."""


MESSAGE = Operation("count-message", "a message in `main`, one live agent", (6, 1, 0, 3), (12, 1, 0))
AMONG = Operation("count-among", f"a message in `main`, {LIVE} live agents", (12, 2, 0, 6), (130, 1, 0))
IDLE = Operation("count-idle", f"{SECONDS} seconds of {FEW} agents that do nothing", (10, 0, 0, 10), (60, 0, 0))
LANDED = Operation("count-landed", "`work` → landed and tidied", (40, 10, 30, 120), (120, 10, 30))
WORKFLOW = Operation("count-workflow", "a trivial workflow", (40, 10, 15, 80), (120, 9, 14))
UNITS = ("reads", "writes", "git")


def counts(*, quick: bool) -> Sequence[Result]:  # noqa: ARG001 - a count has no shorter way
    """Each operation once more after it was done before: the first one makes what the others find."""
    found = measured()
    return [result for operation, counted in found for result in _results(operation, counted)]


def _results(operation: Operation, counted: Counter[str]) -> list[Result]:
    units = zip((*UNITS, "ms"), operation.goals, strict=True)
    return [
        Result(
            name=f"{operation.name}-{unit}",
            what=f"{operation.what}: {_MEANS[unit]}",
            unit=_SHOWN[unit],
            ours=counted[unit],
            goal=goal,
        )
        for unit, goal in units
    ]


_MEANS = {
    "reads": "store reads",
    "writes": "store writes",
    "git": "git processes",
    "ms": "processor time of the daemon",
}
_SHOWN = {"reads": "", "writes": "", "git": "", "ms": "ms"}


def exceeding() -> list[str]:
    """What costs more than it did: a sentence for each."""
    return [
        f"{operation.what} takes {counted[unit]} {_MEANS[unit]}, and at most {most} are allowed."
        for operation, counted in measured()
        for unit, most in zip(UNITS, operation.most, strict=True)
        if counted[unit] > most
    ]


def measured() -> list[tuple[Operation, Counter[str]]]:
    """The counts of each operation, and its milliseconds."""
    waiting = (
        (MESSAGE, _message(1)),
        (AMONG, _message(LIVE)),
        (IDLE, _idle()),
        (LANDED, _landed()),
        (WORKFLOW, _workflow()),
    )
    return [(operation, asyncio.run(measuring)) for operation, measuring in waiting]


# ── operations ──


async def _message(live: int) -> Counter[str]:
    async def say(place: Place) -> None:
        await place.ask("POST", "/messages", body="Word", channel="main", path=str(place.source))

    async def first(place: Place) -> None:
        await _sleepers(place, live)
        await say(place)

    return await _counted(first, say)


async def _idle() -> Counter[str]:
    return await _counted(lambda place: _sleepers(place, FEW), lambda _: asyncio.sleep(SECONDS))


async def _sleepers(place: Place, count: int) -> None:
    for _ in range(count):
        await place.work("exec sleep 3600")
    await asyncio.to_thread(wait_for, lambda: place.outside.live() >= count)


async def _landed() -> Counter[str]:
    return await _counted(_land, _land)


async def _land(place: Place) -> None:
    await place.work(COMMITS)
    await place.until_idle()


async def _workflow() -> Counter[str]:
    async def run(place: Place) -> None:
        file = place.source.with_name("flow.yaml")
        file.write_text(FLOW)
        await place.ask("POST", "/instances", file=str(file), path=str(place.source))
        await place.until_idle()

    return await _counted(run, run)


# ── counting ──


@dataclass(frozen=True, slots=True)
class Place:
    """A whole Windlass that serves, a repository, and what has been counted."""

    outside: Outside
    source: Path
    tally: Counter[str]

    async def ask(self, method: str, route: str, **given: Any) -> Any:
        return await asyncio.to_thread(lambda: self.outside.ask(method, route, **given))

    async def work(self, command: str) -> None:
        await asyncio.to_thread(self.outside.work, self.source, command)

    async def until_idle(self) -> None:
        """Wait until no run lives and nothing is written any more."""
        await self.until_calm()
        await asyncio.to_thread(wait_for, lambda: self.outside.live() == 0)
        await self.until_calm()

    async def until_calm(self) -> None:
        """Wait until nothing is asked any more. Raises CannotRun if that never comes."""
        calm, last = 0, Counter[str]()
        for _ in range(LONGEST):
            await asyncio.sleep(0.1)
            calm, last = (calm + 1 if self.tally == last else 0), Counter(self.tally)
            if calm == CALM:
                return
        raise CannotRun("the daemon never stops asking its store, so that one operation's part can't be told apart.")


async def _counted(
    before: Callable[[Place], Awaitable[None]], operation: Callable[[Place], Awaitable[None]]
) -> Counter[str]:
    """What an operation costs until all that follows from it is done."""
    with tempfile.TemporaryDirectory(prefix="wl") as folder, counting() as tally:
        source, home = repository(Path(folder) / "repo", 20), Path(folder) / "home"
        git(source, "reset", "-q", "--hard")
        async with whole(home, serving=True):
            place = Place(Outside(home, os.getpid()), source, tally)
            await before(place)
            await place.until_calm()
            tally.clear()
            began = time.process_time()
            await operation(place)
            await place.until_calm()
            return Counter(tally) + Counter(ms=round((time.process_time() - began) * 1000))


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """Count the questions to the store, its transactions, and the git processes, as long as the block lasts."""
    tally = Counter[str]()
    wrapped = [(holder, name, getattr(holder, name), unit) for holder, name, unit in (*COUNTED, SPAWN)]
    for holder, name, original, unit in wrapped:
        setattr(holder, name, _tallied(original, tally, unit))
    try:
        yield tally
    finally:
        for holder, name, original, _ in wrapped:
            setattr(holder, name, original)


def _tallied(original: Callable[..., Awaitable[Any]], tally: Counter[str], unit: str) -> Callable[..., Awaitable[Any]]:
    async def counted(*arguments: Any, **named: Any) -> Any:
        tally[unit] += 1
        return await original(*arguments, **named)

    return counted
