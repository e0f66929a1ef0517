"""The watch tick: output is kept as it grows, and runs that are over are handed to `Finish`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from windlass.core import hitches
from windlass.core.agent import Agent
from windlass.core.errors import NotFound
from windlass.core.lines import Lines
from windlass.core.ports import Ports, Writing
from windlass.core.ports import Reading as StoreReading
from windlass.core.project import Project
from windlass.core.provider import Provider, Reading
from windlass.core.run import Chunk, Hitch, Identity, Run, Trouble, Usage
from windlass.core.signal import BadSignal
from windlass.engine.bell import Bell
from windlass.engine.finish import Finish
from windlass.engine.lanes import Lanes
from windlass.engine.runs import Runs

STEP = 1_000_000
"""Bytes that are kept in one transaction."""
LOOK_BACK = 64_000
"""How far back an unfinished line is looked for after a restart."""


@dataclass(slots=True)
class Tail:
    """How far one run's output has been read, in this daemon's life."""

    offset: int
    lines: Lines
    place: tuple[Project, Agent]
    """Whose worktree it runs in."""
    begun: float
    """When it started, as the clock that never jumps would have said."""
    heard: float
    """When it last said something, or when we began to listen."""
    signalled_at: float | None = None
    """When a signal was first seen while the process lived."""


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
        await self._ingest(run, tail)
        if not alive:
            await self._conclude(run, tail)
        elif self._is_over(run, tail) or await self._cut(run, tail):
            await self._end(run, run.identity)

    async def _tail(self, run: Run) -> Tail:
        """How far this run has been read; after a restart, from what is kept."""
        if run.id not in self._tails:
            offset, place = await self.store.read(lambda store: (store.output_end(run.id), _place(store, run)))
            start = max(0, offset - LOOK_BACK)
            kept = self.processes.output(run.id, start, offset - start)
            now = self.clock.monotonic()
            begun = now - max(0.0, self.clock.now() - (run.started_at or run.starting_at))
            self._tails[run.id] = Tail(offset, Lines(kept.rpartition(b"\n")[2]), place, begun, heard=now)
            if run.identity is not None:
                self.processes.follow(run.id, run.identity, self.stir)
        return self._tails[run.id]

    async def _ingest(self, run: Run, tail: Tail) -> None:
        """Keep what was written since the last look: bytes, offset and what they tell, in one transaction."""
        provider = self.providers.get(run.provider)
        while content := self.processes.output(run.id, tail.offset, STEP):
            lines, whole = tail.lines.feed(content)
            readings = [provider.read(each) for each in whole]
            chunk = Chunk(run.id, tail.offset, self.clock.now(), content)
            await self.store.write(partial(_keep, chunk, readings, provider))
            tail.offset, tail.lines, tail.heard = chunk.end, lines, self.clock.monotonic()
            self.bell.hum()

    def _is_over(self, run: Run, tail: Tail) -> bool:
        """Whether a process that still lives should not: it was asked to stop, or has given its signal."""
        if run.stopping or _is_cut(run) or not self.git.has_worktree(*tail.place):
            return True
        if not run.said and isinstance(
            self.workdirs.signal(run.id, self.git.worktree_path(*tail.place)), BadSignal | None
        ):
            return False
        now = self.clock.monotonic()
        tail.signalled_at = tail.signalled_at or now
        return now - tail.signalled_at >= self.settings.at("").daemon.stop_grace_seconds

    async def _cut(self, run: Run, tail: Tail) -> bool:
        """Whether a run is ended because it stalled or ran away; the reason is kept before anything is done."""
        now = self.clock.monotonic()
        pulse = hitches.Pulse(age=now - tail.begun, silent=now - tail.heard, calls=run.usage.calls)
        hitch = hitches.decide_cut(pulse, self.settings.at(tail.place[0].path).limits)
        if hitch is None:
            return False
        await self.store.write(partial(_record_cut, run.id, hitch))
        return True

    async def _end(self, run: Run, identity: Identity) -> None:
        await self.processes.stop(run.id, identity, grace=self.settings.at("").daemon.stop_grace_seconds)
        self.stir(run.id)

    async def _conclude(self, run: Run, tail: Tail) -> None:
        """Its process has gone: end what it left behind, read to the end, and have it judged."""
        await self.processes.stop(run.id, run.identity, grace=self.settings.at("").daemon.stop_grace_seconds)
        await self._ingest(run, tail)
        provider = self.providers.get(run.provider)
        last = [provider.read(each) for each in tail.lines.end()]
        await self.store.write(partial(_learn, run.id, last, provider))
        known = await self.store.read(lambda store: store.find(Run, run.id))
        await self.finish.run(known or run)
        self.processes.forget(run.id)
        del self._tails[run.id]


def _place(store: StoreReading, run: Run) -> tuple[Project, Agent]:
    agent = store.find(Agent, run.agent)
    project = store.find(Project, agent.project) if agent else None
    if agent is None or project is None:
        raise NotFound(f"Run {run.id} has lost its agent or project.")
    return project, agent


def _is_cut(run: Run) -> bool:
    return run.hitch is not None and run.hitch.kind in (Trouble.STALL, Trouble.RUNAWAY)


def _record_cut(key: str, hitch: Hitch, store: Writing) -> None:
    run = store.find(Run, key)
    if run is not None and run.live and not _is_cut(run):
        store.record("run.cut", key, replace(run, hitch=hitch))


def _keep(chunk: Chunk, readings: list[Reading], provider: Provider, store: Writing) -> None:
    store.append(chunk)
    _learn(chunk.run, readings, provider, store)


def _learn(key: str, readings: list[Reading], provider: Provider, store: Writing) -> None:
    """Write down what the output tells about its run."""
    run = store.find(Run, key)
    if run is None:
        return
    learned = run
    for reading in readings:
        learned = replace(
            learned,
            session=reading.session or learned.session,
            model=reading.model or learned.model,
            result=reading.result or learned.result,
            hitch=_hitch(learned, reading),
        )
        if reading.usage:
            learned = replace(learned, usage=_usage(store, learned, reading, provider))
    if learned != run:
        store.record("run.learned", key, learned)


def _hitch(run: Run, reading: Reading) -> Hitch | None:
    """The newest trouble; one is over when the program ends its turn without it. What we saw ourselves stays."""
    if _is_cut(run):
        return run.hitch
    new, old = reading.hitch, run.hitch
    if new and old and new.kind is old.kind and new.until is None:
        return replace(new, until=old.until)  # of several lines about one trouble, only one tells its end
    return new or (None if reading.ended else old)


def _usage(store: StoreReading, run: Run, reading: Reading, provider: Provider) -> Usage:
    """What this run has used by now. A session's total is more than that: earlier runs had their part in it."""
    new = reading.usage or Usage()
    if reading.total:
        earlier = (
            each for each in store.runs_of(run.agent) if each.number < run.number and each.session == run.session
        )
        usage = sum((replace(-each.usage, cost_usd=0.0) for each in earlier), new)
        usage = replace(usage, calls=run.usage.calls + new.calls)  # these are counted as they are made
    else:
        usage = run.usage + new
    return usage if usage.cost_usd else replace(usage, cost_usd=provider.price(run.model, usage))
