"""Ending a whole tree of processes, also what left its session or dropped its environment."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterable, Iterator

from windlass.core.errors import TimedOut
from windlass.core.nouns.run import Identity
from windlass.process.proc import Process, boot_id, send, words_of
from windlass.process.process_table import ProcessTable
from windlass.process.watching.exits import all_gone

_FIRST_PAUSE = 0.25
_FREEZES = 20
_SHIM_TIME = 1.0
_KILL_TIME = 10.0


class ProcessTree:
    """The processes of one run or check. What was once seen as a member stays one, wherever it moves."""

    def __init__(
        self,
        survey: Callable[[], Awaitable[ProcessTable]],
        ours: Callable[[str], bool],
        *,
        root: Identity | None = None,
        spares: Callable[[ProcessTable], Iterable[Identity]] = lambda _: (),
    ) -> None:
        self._survey = survey
        self._ours = ours
        self._root = root
        self._spares = spares
        self._seen: set[Identity] = set()
        self._spared: set[Identity] = set()

    async def end(self, *, grace: float, gently: signal.Signals = signal.SIGTERM) -> int:
        """Ask all to end, kill those that do not, and return how many there were.

        Those to spare are not asked, and killed last: a shim, which ends by itself and still has to tell how.
        """
        if await self._members() and not await self._ask(grace, gently):
            await self._kill()
        return len(self._seen)

    async def _ask(self, grace: float, gently: signal.Signals) -> bool:
        """Ask all to end, also those that appear meanwhile. False if some are left when the time is up.

        One that has become another program since is asked again: it may have been a shell's fork, which still had the
        shell's trap and swallowed the signal.
        """
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + grace, _FIRST_PAUSE
        asked: dict[Identity, list[str]] = {}
        while (members := await self._members()) and loop.time() < deadline:
            programs = {member: words_of(member.pid) for member in members - self._spared}
            _signal((member for member, words in programs.items() if asked.get(member) != words), gently)
            asked |= programs
            await all_gone(members, min(pause, deadline - loop.time()))
            pause *= 2
        return not members

    async def _kill(self) -> None:
        await self._freeze()
        _signal(self._seen - self._spared, signal.SIGKILL)
        await all_gone(self._seen, _SHIM_TIME)
        deadline = asyncio.get_running_loop().time() + _KILL_TIME
        while left := await self._members():
            if asyncio.get_running_loop().time() > deadline:
                raise _cannot_end(left)
            _signal(left, signal.SIGKILL)
            await all_gone(left, _SHIM_TIME)

    async def _freeze(self) -> None:
        """Halt all before any is killed: else one could fork in between, and its child be lost from sight."""
        frozen: set[Identity] = set()
        for _ in range(_FREEZES):
            new = await self._members() - frozen - self._spared
            if not new:
                return
            _signal(new, signal.SIGSTOP)
            frozen |= new

    async def _members(self) -> set[Identity]:
        """The members that live now."""
        census = await self._survey()
        found = members(census, self._ours, self._root, self._seen)
        self._seen |= found
        self._spared.update(self._spares(census))
        return found


def members(
    census: ProcessTable, ours: Callable[[str], bool], root: Identity | None = None, seen: Iterable[Identity] = ()
) -> set[Identity]:
    """The members of the tree: by marker, the root, those seen before, and all their descendants."""
    exempt = _ourselves(census)
    done: set[int] = set()
    fresh = {known.pid for known in (*seen, *([root] if root else [])) if census.has(known)}
    fresh |= {process.pid for marker, marked in census.by_marker.items() if ours(marker) for process in marked}
    fresh |= _orphans(census, ours, root)
    while fresh := fresh - done - exempt:
        done |= fresh
        fresh = {child.pid for pid in fresh for child in _offspring(census, census.by_pid[pid])}
    return {census.by_pid[pid].identity for pid in done}


def _offspring(census: ProcessTable, process: Process) -> Iterator[Process]:
    """Its children, and those in the session that it leads, or whose leader has gone."""
    yield from census.by_parent.get(process.pid, ())
    yield from census.by_session.get(process.pid, ())
    if process.session and process.session not in census.by_pid:
        yield from census.by_session[process.session]


def _orphans(census: ProcessTable, ours: Callable[[str], bool], root: Identity | None) -> set[int]:
    """Those left in the session of a root that has gone. Its number is not given again while they live."""
    if root is None or root.boot != boot_id() or root.pid in census.by_pid:
        return set()
    session = census.by_session.get(root.pid, ())
    later = (process for process in session if process.started >= root.started)
    return {process.pid for process in later if not process.marker or ours(process.marker)}


def _ourselves(census: ProcessTable) -> set[int]:
    """This process and all it came from: never signalled."""
    pid, line = os.getpid(), {1}
    while pid in census.by_pid and pid not in line:
        line.add(pid)
        pid = census.by_pid[pid].parent
    return line


def _signal(processes: Iterable[Identity], number: signal.Signals) -> None:
    for identity in processes:
        send(identity, number)


def _cannot_end(left: Iterable[Identity]) -> TimedOut:
    pids = ", ".join(str(pid) for pid in sorted(identity.pid for identity in left))
    return TimedOut(
        f"Some processes could not be ended (pid {pids}).",
        hint=f"See what holds them with `ps -o pid,user,stat,args -p {pids.replace(' ', '')}`.",
    )
