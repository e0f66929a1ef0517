"""The watch tick: output is kept as it grows, and runs that are over are handed to `Finish`."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import partial

from windlass.core.agent import Agent
from windlass.core.errors import NotFound
from windlass.core.lines import Lines
from windlass.core.ports import Ports, Writing
from windlass.core.ports import Reading as StoreReading
from windlass.core.project import Project
from windlass.core.provider import Reading
from windlass.core.run import Chunk, Identity, Run
from windlass.core.signal import BadSignal
from windlass.engine.bell import Bell
from windlass.engine.finish import Finish
from windlass.engine.lanes import Lanes
from windlass.engine.runs import Runs

STEP = 1_000_000
"""Bytes that are kept in one transaction."""
STEPS_AT_ONCE = 4
"""Transactions after which an attendant looks up from what a live process prints: is it over, should it be?"""
LOOK_BACK = 64_000
"""How far back an unfinished line is looked for after a restart."""
MARK = 64
"""How many bytes before the place where we read on must still be what they were."""
CUT = "its file was emptied or replaced, and what it had not given away by then is lost"


@dataclass(slots=True)
class Tail:
    """How far one run's output has been read, in this daemon's life."""

    offset: int
    lines: Lines
    place: tuple[Project, Agent]
    """Whose worktree it runs in."""
    cut: int = 0
    """Where the first byte of the file stands in the output."""
    mark: bytes = b""
    """The last bytes that were read: if they do not stand before the next ones, this is not the same file any more."""
    signalled_at: float | None = None
    """When a signal was first seen while the process lived."""

    def keep(self, content: bytes, lines: Lines) -> None:
        """Remember what has been read."""
        self.offset += len(content)
        self.lines = lines
        self.mark = (self.mark + content)[-MARK:]

    def begin_anew(self) -> None:
        """What the file holds from now on follows on what was kept."""
        self.cut = self.offset
        self.lines = Lines(odd=self.lines.odd | {CUT})
        self.mark = b""


class Watch:
    """One attendant per live run. Whatever stirs, it looks at the facts anew."""

    def __init__(self, ports: Ports, bell: Bell, runs: Runs, finish: Finish, lanes: Lanes) -> None:
        self.store = ports.store
        self.git = ports.git
        self.processes = ports.processes
        self.workdirs = ports.workdirs
        self.providers = ports.providers
        self.settings = ports.settings
        self.clock = ports.clock
        self.bell = bell
        self.runs = runs
        self.finish = finish
        self.lanes = lanes
        self._tails: dict[str, Tail] = {}
        runs.stir = self.stir

    def stir(self, run: str) -> None:
        """Something happened to this run's output or process."""
        self.lanes.begin(run, lambda: self._attend(run))

    async def tick(self) -> bool:
        """Look after every live run; between ticks, the kernel stirs those that need it."""
        for run in await self.store.read(lambda store: store.live_runs()):
            self.stir(run.id)
        return False

    async def _attend(self, key: str) -> None:
        """One repeatable step for one run."""
        run = await self.store.read(lambda store: store.find(Run, key))
        if run is None or not run.live or (self.runs.lanes.busy(key) and run.identity is None):
            return
        if run.identity is None:
            if not await self.runs.recover(run):
                await self._conclude(run, await self._tail(run))
            return
        tail = await self._tail(run)
        alive = self.processes.alive(run.identity)  # before reading, so that nothing said at the end is missed
        more = not await self._ingest(run, tail, steps=STEPS_AT_ONCE)
        if not alive:
            await self._conclude(run, tail)
        elif self._is_over(run, tail):
            await self._end(run, run.identity)
        elif more:
            self.stir(run.id)

    async def _tail(self, run: Run) -> Tail:
        """How far this run has been read; after a restart, from what is kept."""
        if run.id not in self._tails:
            offset, mark, place = await self.store.read(lambda store: (*_end(store, run.id), _place(store, run)))
            start = max(run.cut, offset - LOOK_BACK)
            kept = self.processes.output(run.id, start - run.cut, offset - start)
            lines = Lines(kept.rpartition(b"\n")[2], odd=frozenset(run.odd))
            self._tails[run.id] = Tail(offset, lines, place, run.cut, mark[max(0, len(mark) - offset + run.cut) :])
            if run.identity is not None:
                self.processes.follow(run.id, run.identity, self.stir)
        return self._tails[run.id]

    async def _ingest(self, run: Run, tail: Tail, *, steps: int = sys.maxsize) -> bool:
        """Keep what was written since the last look: bytes, offset and what they tell, in one transaction each step.

        Says whether that was all. Some print faster than one can read: then there is no end to it.
        """
        provider = self.providers.get(run.provider)
        for _ in range(steps):
            content = self._next(run, tail)
            if not content:
                return True
            lines, whole = tail.lines.feed(content)
            readings = [each for each in map(provider.read, whole) if each.tells]
            chunk = Chunk(run.id, tail.offset, self.clock.now(), content)
            await self.store.write(partial(_keep, chunk, readings, lines.odd, tail.cut))
            tail.keep(content, lines)
            self.bell.hum()
        return False

    def _next(self, run: Run, tail: Tail) -> bytes:
        """The next bytes of the output. `> /dev/stderr` in a script empties the file: then those that it has now."""
        place = tail.offset - tail.cut - len(tail.mark)
        content = self.processes.output(run.id, place, len(tail.mark) + STEP)
        if content.startswith(tail.mark):
            return content[len(tail.mark) :]
        tail.begin_anew()
        return self.processes.output(run.id, 0, STEP)

    def _is_over(self, run: Run, tail: Tail) -> bool:
        """Whether a process that still lives should not: it was asked to stop, or has given its signal."""
        if run.stopping or not self.git.has_worktree(*tail.place):
            return True
        if not run.said and isinstance(
            self.workdirs.signal(run.id, self.git.worktree_path(*tail.place)), BadSignal | None
        ):
            return False
        now = self.clock.monotonic()
        tail.signalled_at = tail.signalled_at or now
        return now - tail.signalled_at >= self.settings.at("").daemon.stop_grace_seconds

    async def _end(self, run: Run, identity: Identity) -> None:
        await self.processes.stop(run.id, identity, grace=self.settings.at("").daemon.stop_grace_seconds)
        self.stir(run.id)

    async def _conclude(self, run: Run, tail: Tail) -> None:
        """Its process has gone: end what it left behind, read to the end, and have it judged."""
        await self.processes.stop(run.id, run.identity, grace=self.settings.at("").daemon.stop_grace_seconds)
        await self._ingest(run, tail)
        last = [self.providers.get(run.provider).read(each) for each in tail.lines.end()]
        odd = tail.lines.feed(b"\n")[0].odd
        await self.store.write(partial(_learn, run.id, last, odd, tail.cut))
        await self.finish.run(run)
        self.processes.forget(run.id)
        del self._tails[run.id]


def _place(store: StoreReading, run: Run) -> tuple[Project, Agent]:
    agent = store.find(Agent, run.agent)
    project = store.find(Project, agent.project) if agent else None
    if agent is None or project is None:
        raise NotFound(f"Run {run.id} has lost its agent or project.")
    return project, agent


def _end(store: StoreReading, run: str) -> tuple[int, bytes]:
    """Where a run's kept output ends, and its last bytes."""
    end = store.output_end(run)
    last = b"".join(each.content for each in store.chunks(run, offset=max(0, end - MARK), limit=MARK))
    return end, last[-MARK:]


def _keep(chunk: Chunk, readings: list[Reading], odd: frozenset[str], cut: int, store: Writing) -> None:
    store.append(chunk)
    _learn(chunk.run, readings, odd, cut, store)


def _learn(key: str, readings: list[Reading], odd: frozenset[str], cut: int, store: Writing) -> None:
    """Write down what the output tells about its run, and about itself."""
    run = store.find(Run, key)
    if run is None:
        return
    learned = replace(run, odd=tuple(sorted(odd)), cut=cut)
    for reading in readings:
        learned = replace(
            learned,
            session=reading.session or learned.session,
            usage=learned.usage + reading.usage if reading.usage else learned.usage,
            result=reading.result or learned.result,
        )
    if learned != run:
        store.record("run.learned", key, learned)
