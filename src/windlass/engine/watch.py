"""The watch tick: output is taken in as it grows, and runs that are over are handed to `Finish`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from windlass.core import hitches
from windlass.core.ports import Ports, Writing
from windlass.core.run import Hitch, Identity, Run
from windlass.core.signal import BadSignal
from windlass.core.workdir import Site
from windlass.engine.finish import Finish
from windlass.engine.intake import Intake, Tail
from windlass.engine.lanes import Lanes
from windlass.engine.runs import Runs

STEPS_AT_ONCE = 4
"""Transactions after which an attendant looks up from what a live process prints: is it over, should it be?"""


class Watch:
    """One attendant per live run. Whatever stirs, it looks at the facts anew."""

    def __init__(self, ports: Ports, runs: Runs, intake: Intake, finish: Finish, lanes: Lanes) -> None:
        self.store = ports.store
        self.git = ports.git
        self.processes = ports.processes
        self.workdirs = ports.workdirs
        self.providers = ports.providers
        self.settings = ports.settings
        self.clock = ports.clock
        self.home = ports.home
        self.runs = runs
        self.intake = intake
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
        more = not await self.intake.take(run, tail, steps=STEPS_AT_ONCE)
        if not alive:
            await self._conclude(run, tail)
        elif self._is_over(run, tail) or await self._halt(run, tail):
            await self._end(run, run.identity)
        elif more:
            self.stir(run.id)

    async def _tail(self, run: Run) -> Tail:
        """How far this run has been read; after a restart, from what is kept."""
        if run.id not in self._tails:
            self._tails[run.id] = await self.intake.resume(run)
            if run.identity is not None:
                self.processes.follow(run.id, run.identity, self.stir)
        return self._tails[run.id]

    def _is_over(self, run: Run, tail: Tail) -> bool:
        """Whether a process that still lives should not: it was asked to stop, or has given its signal."""
        if run.stopping or hitches.was_halted(run) or not self._has_worktrees(tail.site):
            return True
        folder = tail.site.folder(self.home, self.git.worktree_path(tail.site.project, tail.site.agent))
        if not run.said and isinstance(self.workdirs.signal(run.id, folder), BadSignal | None):
            return False
        now = self.clock.monotonic()
        tail.signalled_at = tail.signalled_at or now
        return now - tail.signalled_at >= self._grace

    def _has_worktrees(self, site: Site) -> bool:
        return all(self.git.has_worktree(each, site.agent) for each in site.projects)

    async def _halt(self, run: Run, tail: Tail) -> bool:
        """Whether a run is ended because it stalled or ran away; the reason is kept before anything is done."""
        now = self.clock.monotonic()
        pulse = hitches.Pulse(age=now - tail.begun, silent=now - tail.heard, calls=run.usage.calls)
        hitch = hitches.decide_halt(pulse, self.settings.at(tail.site.project.path).limits)
        if hitch is None:
            return False
        await self.store.write(partial(_record_halt, run.id, hitch))
        return True

    async def _end(self, run: Run, identity: Identity) -> None:
        gently = self.providers.get(run.provider).gently
        await self.processes.stop(run.id, identity, grace=self._grace, gently=gently)
        self.stir(run.id)

    async def _conclude(self, run: Run, tail: Tail) -> None:
        """Its process has gone: end what it left behind, read to the end, and have it judged."""
        await self.processes.stop(run.id, run.identity, grace=self._grace)
        await self.finish.run(await self.intake.take_last(run, tail))
        self.processes.forget(run.id)
        del self._tails[run.id]

    @property
    def _grace(self) -> float:
        return self.settings.at("").daemon.stop_grace_seconds


def _record_halt(key: str, hitch: Hitch, store: Writing) -> None:
    run = store.find(Run, key)
    if run is not None and run.live and not hitches.was_halted(run):
        store.record("run.halted", key, replace(run, hitch=hitch))
