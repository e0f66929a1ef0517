"""The examinations of `windlass doctor`: this machine, this home and one repository."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from pathlib import Path

from windlass.core.display import age, word
from windlass.core.errors import WindlassError
from windlass.core.invariants import Finding
from windlass.core.nouns.agent import Confinement
from windlass.core.runs.sandbox import UNENFORCED, wanted_for_checks
from windlass.daemon.lifecycle import STORE
from windlass.engine import Engine
from windlass.library.safe_files import is_top
from windlass.process.caller_run import can_pin_callers
from windlass.store.copies import copy_of

LEAST_FREE = 500_000_000
"""Bytes on the home's disk below which work will soon stop."""

MOMENT = 2.0
"""Seconds after which whoever has our lock open means to keep it."""


class Doctor:
    """Looks, and says what to do next."""

    def __init__(self, engine: Engine, home: Path) -> None:
        self.engine = engine
        self.home = home

    async def examine(self, path: str) -> Sequence[Finding]:
        """Everything, the repository at a path included."""
        return [
            Finding(name="python", ok=sys.version_info >= (3, 11), detail=sys.version.split()[0]),
            self._git_program(),
            self._home(),
            self._disk(),
            await self._journal(),
            self._copy(),
            await self._output(),
            await self._runs(),
            self._ticks(),
            await self._sandbox(),
            about_callers(pinned=can_pin_callers()),
            await self._projects(),
            *(await self._repository(path) if path else []),
        ]

    def check(self) -> AsyncIterator[Finding]:
        """Every promise, looked at one by one."""
        return self.engine.audit.findings(partial(rivals, self.home))

    def _git_program(self) -> Finding:
        found = shutil.which("git")
        return Finding(name="git", ok=bool(found), detail=found or "not found", hint="" if found else "Install git.")

    def _home(self) -> Finding:
        writable = os.access(self.home, os.W_OK)
        hint = "" if writable else "Set WINDLASS_HOME to a folder that you can write to."
        return Finding(name="home", ok=writable, detail=str(self.home), hint=hint)

    def _disk(self) -> Finding:
        free = shutil.disk_usage(self.home).free
        hint = "" if free > LEAST_FREE else "Make room: agents and checks will fail when the disk is full."
        return Finding(name="disk", ok=free > LEAST_FREE, detail=f"{free / 1e9:.1f} GB free", hint=hint)

    async def _journal(self) -> Finding:
        problem = await self.engine.ports.store.verify()
        last = await self.engine.ports.store.read(lambda store: store.last_seq())
        detail = problem or f"{last} events, each chained to the one before"
        hint = "Keep the home folder as it is; the journal was changed by something else." if problem else ""
        return Finding(name="journal", ok=not problem, detail=detail, hint=hint)

    def _copy(self) -> Finding:
        """How old the copy is that `--restore` would put back."""
        copy = copy_of(self.home / STORE)
        try:
            ago = f"made {age(time.time() - copy.stat().st_mtime)} ago"
        except OSError:
            ago = "not made yet"
        return Finding(name="copy", ok=True, detail=f"{copy}, {ago}")

    async def _output(self) -> Finding:
        """How much agents have said, and how much room that takes."""
        said, kept = await self.engine.ports.store.read(lambda store: store.output_size())
        detail = f"{said / 1e6:.1f} MB, kept in {kept / 1e6:.1f} MB for ever"
        return Finding(name="output", ok=True, detail=detail)

    async def _runs(self) -> Finding:
        live = await self.engine.ports.store.read(lambda store: store.live_runs())
        alive = await self.engine.ports.processes.alive(*(run.identity for run in live if run.identity))
        gone = [run.id for run in live if run.identity and run.identity not in alive]
        detail = f"{len(live)} live" + (f"; about to be judged: {', '.join(gone)}" if gone else "")
        return Finding(name="runs", ok=True, detail=detail)

    def _ticks(self) -> Finding:
        troubles, present = self.engine.troubles.all(), self.engine.troubles.present()
        if not troubles:
            return Finding(name="ticks", ok=True, detail="no trouble since the daemon started")
        newest = troubles[-1]
        ago = age(self.engine.ports.clock.now() - newest.at)
        more = f"; and {len(present) - 1} more" if len(present) > 1 else ""
        detail = f"{newest.tick}: {newest.message} ({newest.times} times, last {ago} ago){more}"
        if not present:
            return Finding(name="ticks", ok=True, detail=f"no trouble now; the last was {detail}")
        return Finding(name="ticks", ok=False, detail=detail, hint=newest.hint or "See `windlass daemon logs`.")

    async def _sandbox(self) -> Finding:
        """Whether agents and checks are kept in their place; that they are not is no fault where the user said so."""
        keeper = await self.engine.ports.processes.sandbox_keeper()
        settings = self.engine.ports.settings.at("").sandbox
        live = await self.engine.ports.store.read(lambda store: store.live_runs())
        loose = sorted(run.agent for run in live if not run.sandbox)
        running = f"; without one now: {', '.join(loose)}" if loose else ""
        modes = {"agents": settings.mode, "checks": wanted_for_checks(settings)}
        kept = [who for who, mode in modes.items() if mode is not Confinement.OFF and not keeper.problem]
        free = [who for who in modes if who not in kept]
        off = "sandbox.mode" if settings.mode is Confinement.OFF else "sandbox.checks"
        why = f"{off} is off" if Confinement.OFF in modes.values() else keeper.problem
        told = [f"{keeper.name} keeps {' and '.join(kept)} in their place"] if kept else []
        told += [f"{UNENFORCED}: {' and '.join(free)} run with your own rights ({why})"] if free else []
        wrong = bool(keeper.problem) and Confinement.ON in modes.values()
        hint = keeper.hint if free else ""
        return Finding(name="sandbox", ok=not wrong, detail="; ".join(told) + running, hint=hint)

    async def _projects(self) -> Finding:
        """Whether every project's repository is where it was."""
        known, absent = await self.engine.forgetting.listing(), await self.engine.absences.all()
        now = self.engine.ports.clock.now()
        gone = [(project.name, absent[project.id].told(now)) for project, _ in known if project.id in absent]
        if not gone:
            return Finding(name="projects", ok=True, detail=f"{len(known)}, each where it was")
        hint = f"Put it back, or give it up: `windlass project forget {word(gone[0][0])}`."
        return Finding(name="projects", ok=False, detail="; ".join(f"{name}: {why}" for name, why in gone), hint=hint)

    async def _repository(self, path: str) -> list[Finding]:
        if not _in_repository(Path(path)):
            detail = f"{path[:200]} is in none, so there was none to look at"
            return [Finding(name="repository", ok=True, detail=detail)]
        try:
            top, main = await self.engine.projects.look(path)
            self.engine.ports.settings.check(top)
            checks = self.engine.ports.settings.at(top).checks
        except WindlassError as error:
            return [Finding(name="repository", ok=False, detail=str(error), hint=error.hint)]
        usual = self.engine.ports.settings.at(top).work.provider
        hint = "" if checks.command else 'Run `windlass init`, or `windlass config set checks.command "…"`.'
        return [
            Finding(name="repository", ok=True, detail=f"{top}, changes land on {main}"),
            Finding(
                name="checks",
                ok=bool(checks.command),
                detail=checks.command or "no command: changes are held, nothing lands untested",
                hint=hint,
            ),
            *([self._provider(usual)] if usual else []),
        ]

    def _provider(self, name: str) -> Finding:
        """Whether what `windlass work` uses without a word is there."""
        try:
            self.engine.ports.providers.require(self.engine.ports.providers.get(name))
        except WindlassError as error:
            return Finding(name="provider", ok=False, detail=str(error), hint=error.hint)
        return Finding(name="provider", ok=True, detail=f"{name}, by work.provider")


def about_callers(*, pinned: bool) -> Finding:
    """Whether a caller can be told for sure from a process that has its pid after it."""
    if pinned:
        return Finding(name="callers", ok=True, detail="each is held by the kernel while it is identified")
    detail = "this kernel does not hold them (Linux 6.5 does): one that ends at once may be taken for another"
    return Finding(name="callers", ok=True, detail=detail)


def _in_repository(path: Path) -> bool:
    try:
        return any(is_top(parent) for parent in (path, *path.parents))
    except OSError:  # a name that no folder can have
        return False


def rivals(home: Path) -> list[str]:
    """Why this daemon may not be, or not stay, the only one of its home: its lock is gone, or someone else has it."""
    lock = home / "daemon.lock"
    others = [f"pid {pid} has the lock of {home} open, too" for pid in _others(lock)]
    if not lock.exists():
        return [*others, f"{lock} is gone, so that another daemon could start"]
    ours = any(_same(lock, file) for file in _open_files("self"))
    return others if ours else [*others, f"{lock} is not the file that this daemon has locked"]


def _others(lock: Path) -> list[int]:
    """Other processes that keep the lock's file open for longer than a read or a fork takes."""
    found, until = {*_holders(lock)} - {os.getpid()}, time.monotonic() + MOMENT
    while found and time.monotonic() < until:
        time.sleep(MOMENT / 20)
        found &= {*_holders(lock)}
    return sorted(found)


def _holders(lock: Path) -> list[int]:
    """Those of our processes that have the lock's file open, also where it was removed since."""
    names = {str(lock), f"{lock} (deleted)"}
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]
    return [pid for pid in pids if any(_target(file) in names for file in _open_files(pid))]


def _open_files(pid: int | str) -> Iterator[Path]:
    """The descriptors of a process; none if it has gone, or is not ours."""
    try:
        yield from Path(f"/proc/{pid}/fd").iterdir()
    except OSError:
        return


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False
