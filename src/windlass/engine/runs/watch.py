"""The watch tick: output is taken in as it grows, and runs that are over are handed to `Judge`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice

from windlass.core.errors import NotFound
from windlass.core.nouns.run import Identity, Run, RunTrouble
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading, Writing
from windlass.core.runs import retry_rules
from windlass.core.runs.signal import BadSignal
from windlass.core.runs.workdir import Site
from windlass.engine.background import Background
from windlass.engine.runs.judge import Judge
from windlass.engine.runs.output_intake import Intake, OutputPosition
from windlass.engine.runs.start import Runs

STEPS_AT_ONCE = 4
"""Transactions after which the intake of a live run pauses, to see whether the run is over."""

LOOKS = 8
"""Followed runs that one tick looks at: with more of them, each has its turn more rarely."""


class Watch:
    """Looks after each live run in the background; each time, it reads the facts anew."""

    def __init__(self, ports: Ports, runs: Runs, intake: Intake, judge: Judge, background: Background) -> None:
        self.ports = ports
        self.store = ports.store
        self.processes = ports.processes
        self.runs = runs
        self.intake = intake
        self.judge = judge
        self.background = background
        self._tails: dict[str, OutputPosition] = {}
        self._turns: Iterator[str] = iter(())
        self._seen = -1
        self._unfollowed = True
        runs.stir = self.stir

    def stir(self, run: str) -> None:
        """Look after this run soon: its output or process has changed."""
        self.background.begin(run, lambda: self._attend(run))

    async def tick(self) -> bool:
        """Follow every live run, and look at what the kernel does not stir us for."""
        found = await self.store.read(self._new_runs)
        if found:
            await self._begin(found)
        for key in await self._due():
            self.stir(key)
        return False

    def _new_runs(self, store: Reading) -> list[Run]:
        """Live runs that nobody follows; where nothing has happened, there are none that we do not know of."""
        last = store.last_seq()
        if last == self._seen and not self._unfollowed:
            return []
        found = [run for run in store.live_runs() if run.id not in self._tails]
        self._seen, self._unfollowed = last, bool(found)
        return found

    async def _begin(self, runs: list[Run]) -> None:
        """Follow these. What has no process, or has lost its place, is looked at by itself."""
        tails = await self.intake.resume(*(run for run in runs if run.identity is not None))
        for run in runs:
            if tail := tails.get(run.id):
                self._follow(run, tail)
            else:
                self.stir(run.id)

    async def _due(self) -> list[str]:
        """Those that are ending or that we are behind with, and a few of the others in turn, if there is a reason."""
        ending = [key for key, tail in self._tails.items() if tail.ending or tail.behind]
        turn = list(islice(self._turns, LOOKS))
        if len(turn) < LOOKS:  # all have had theirs
            self._turns = iter(list(self._tails))
        known = ((key, self._tails.get(key)) for key in turn)
        return ending + [key for key, tail in known if tail and await self._is_due(key, tail)]

    async def _is_due(self, key: str, tail: OutputPosition) -> bool:
        """Whether a run has given its signal, lost its worktree, committed something, or taken too long."""
        with self.background.troubles.noted("watch"):
            lost = not await self._has_worktrees(tail.site)
            moved = await self._has_moved(tail)
            return lost or moved or await self._has_signal(key, tail) or self._overdue(tail) is not None
        return False  # its own trouble; the others have their turn

    async def _has_moved(self, tail: OutputPosition) -> bool:
        """Whether the agent has committed since its commits were last taken in."""
        agent, start = tail.site.agent, {tail.site.project.id: tail.run.base}
        there = {each.id: await self.ports.git.commit_there(each, agent) for each in tail.site.projects}
        known = start | tail.taken
        tail.moved = {key: commit for key, commit in there.items() if commit and commit != known.get(key)}
        return bool(tail.moved)

    async def _take_commits(self, tail: OutputPosition) -> None:
        """Take the agent's commits in while it works, so that they outlive its worktree."""
        moved, tail.moved = tail.moved, {}
        for project in tail.site.projects:
            if project.id in moved:
                await self.ports.git.branch(project, tail.site.agent)
        tail.taken |= moved

    async def _attend(self, key: str) -> None:
        """One repeatable step for one run; a tick repeats it if it fails, also if it was the first."""
        behind = True
        try:
            await self._look_after(key)
            behind = False
        finally:
            if tail := self._tails.get(key):
                tail.behind = behind

    async def _look_after(self, key: str) -> None:
        if known := self._tails.get(key):  # what it says comes first: others wait to hear it
            await self.intake.take(known.run, known, steps=1)
        run = await self.store.read(lambda store: store.find(Run, key))
        if run is None or not run.live:
            self._let_go(key)
            return
        if run.identity is None:
            if not self.runs.background.busy(key) and not await self.runs.recover(run):
                await self._conclude(run, await self._tail(run))
            return
        tail = await self._tail(run)
        alive = await self.processes.alive(run.identity)  # before reading, so that nothing said at the end is missed
        tail.ending |= not alive
        more = not await self.intake.take(run, tail, steps=STEPS_AT_ONCE)
        if not alive:
            await self._conclude(run, tail)
        elif await self._is_over(run, tail) or await self._halt(run, tail):
            await self._end(run, run.identity)
        else:
            await self._take_commits(tail)
            if more:
                self.stir(run.id)

    async def _tail(self, run: Run) -> OutputPosition:
        """The reading position of this run; after a restart, from the store."""
        if run.id not in self._tails:
            tails = await self.intake.resume(run)
            if run.id not in tails:
                raise NotFound(f"Run {run.id} has lost its agent or project.")
            self._follow(run, tails[run.id])
        return self._tails[run.id]

    def _follow(self, run: Run, tail: OutputPosition) -> None:
        if run.id in self._tails:
            return  # someone was faster, and may have read on since
        self._tails[run.id] = tail
        worktree = self.ports.git.worktree_path(tail.site.project, tail.site.agent)
        tail.folder = tail.site.folder(self.ports.home, worktree)
        if run.identity is not None:
            places = self.ports.workdirs.signal_places(tail.folder)
            self.processes.follow(run.id, run.identity, self.stir, *places)

    def _let_go(self, key: str) -> None:
        self.processes.forget(key)
        self._tails.pop(key, None)

    async def _is_over(self, run: Run, tail: OutputPosition) -> bool:
        """Whether a process that still lives should not: it was asked to stop, or has given its signal."""
        if run.stopping or retry_rules.was_halted(run) or not await self._has_worktrees(tail.site):
            tail.ending = True
            return True
        if not run.said and not await self._has_signal(run.id, tail):
            return False
        tail.ending = True
        now = self.ports.clock.monotonic()
        tail.signalled_at = tail.signalled_at or now
        return now - tail.signalled_at >= self._grace

    async def _has_worktrees(self, site: Site) -> bool:
        return all([await self.ports.git.has_worktree(project, site.agent) for project in site.projects])

    async def _has_signal(self, key: str, tail: OutputPosition) -> bool:
        return not isinstance(await self.ports.workdirs.signal(key, tail.folder), BadSignal | None)

    async def _halt(self, run: Run, tail: OutputPosition) -> bool:
        """Whether a run is ended because it stalled or ran away; the reason is kept before anything is done."""
        trouble = self._overdue(tail, calls=run.usage.calls)
        if trouble is not None:
            await self.store.write(partial(_record_halt, run.id, trouble))
        return trouble is not None

    def _overdue(self, tail: OutputPosition, calls: int = 0) -> RunTrouble | None:
        now = self.ports.clock.monotonic()
        activity = retry_rules.RunActivity(age=now - tail.begun, silent=now - tail.heard, calls=calls)
        return retry_rules.decide_halt(activity, self.ports.settings.at(tail.site.project.path).limits)

    async def _end(self, run: Run, identity: Identity) -> None:
        gently = self.ports.providers.get(run.provider).gently
        await self.processes.stop(run.id, identity, grace=self._grace, gently=gently)
        self.stir(run.id)

    async def _conclude(self, run: Run, tail: OutputPosition) -> None:
        """Its process has gone: end what it left behind, read to the end, and have it judged."""
        await self.processes.stop(run.id, run.identity, grace=self._grace)
        await self.judge.run(await self.intake.take_last(run, tail))
        self._let_go(run.id)

    @property
    def _grace(self) -> float:
        return self.ports.settings.at("").daemon.stop_grace_seconds


def _record_halt(key: str, trouble: RunTrouble, store: Writing) -> None:
    run = store.find(Run, key)
    if run is not None and run.live and not retry_rules.was_halted(run):
        store.record("run.halted", key, replace(run, trouble=trouble))
