"""Ending a whole tree of processes, also what left its session or dropped its environment."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator

from windlass.core.errors import TimedOut
from windlass.core.nouns.run import Identity
from windlass.process.proc import Process, boot_id, send, words_of
from windlass.process.process_table import ProcessTable
from windlass.process.stamp import own_stamp
from windlass.process.watching.exits import all_gone

_FIRST_PAUSE = 0.25
_FREEZES = 20
_SHIM_TIME = 1.0
_KILL_TIME = 10.0


class ProcessTree:
    """The processes of one run or check. What was once seen as a member stays one, wherever it moves.

    `stamped` says which stamps are those of its processes; what is below one of the `others` is not its own, though.
    """

    def __init__(
        self,
        survey: Callable[[], Awaitable[ProcessTable]],
        stamped: Callable[[int], bool],
        *,
        root: Identity | None = None,
        others: Container[Identity] = (),
        spares: Callable[[ProcessTable], Iterable[Identity]] = lambda _: (),
    ) -> None:
        self._survey = survey
        self._stamped = stamped
        self._root = root
        self._others = others
        self._spares = spares
        self._seen: set[Identity] = set()
        self._spared: set[Identity] = set()

    async def end(self, *, grace: float, gently: signal.Signals = signal.SIGTERM) -> int:
        """Ask all to end, kill those that do not, and return how many there were.

        Those to spare are not asked, and killed last: a shim, which ends by itself and still has to tell how.
        """
        members = await self._members()
        if members and not await self._ask(members, grace, gently):
            await self._kill()
        return len(self._seen)

    async def _ask(self, members: set[Identity], grace: float, gently: signal.Signals) -> bool:
        """Ask these to end, also those that appear meanwhile. False if some are left when the time is up.

        One that has become another program since is asked again: it may have been a shell's fork, which still had the
        shell's trap and swallowed the signal.
        """
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + grace, _FIRST_PAUSE
        asked: dict[Identity, list[str]] = {}
        while members and loop.time() < deadline:
            programs = {member: words_of(member.pid) for member in members - self._spared}
            _signal((member for member, words in programs.items() if asked.get(member) != words), gently)
            asked |= programs
            await all_gone(members, min(pause, deadline - loop.time()))
            members, pause = await self._members(), pause * 2
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
        table = await self._survey()
        strays = stamped_processes(table, self._stamped, self._others)
        known = [*self._seen, *([self._root] if self._root else [])]
        found = _descendants(table, {process.pid for process in (*strays, *_orphans(table, self._root))}, known)
        self._seen |= found
        self._spared.update(self._spares(table))
        return found


def stamped_processes(
    table: ProcessTable, stamped: Callable[[int], bool], others: Container[Identity] = ()
) -> list[Process]:
    """The processes with these stamps, but for those below others: one may lower its stamp to look like theirs."""
    found = (process for stamp in table.by_stamp if stamped(stamp) for process in table.by_stamp[stamp])
    return [process for process in found if not table.descends(process, others)]


def _descendants(table: ProcessTable, fresh: set[int], known: Iterable[Identity]) -> set[Identity]:
    """These processes, those that are known, and all their descendants."""
    exempt = _ourselves(table)
    done: set[int] = set()
    fresh |= {identity.pid for identity in known if table.has(identity)}
    while fresh := fresh - done - exempt:
        done |= fresh
        fresh = {child.pid for pid in fresh for child in _offspring(table, table.by_pid[pid])}
    return {table.by_pid[pid].identity for pid in done}


def _offspring(table: ProcessTable, process: Process) -> Iterator[Process]:
    """Its children, and those in the session that it leads, or whose leader has gone."""
    yield from table.by_parent.get(process.pid, ())
    yield from table.by_session.get(process.pid, ())
    if process.session and process.session not in table.by_pid:
        yield from table.by_session[process.session]


def _orphans(table: ProcessTable, root: Identity | None) -> list[Process]:
    """Those left in the session of a root that has gone. A stranger who has its number now is not one of ours."""
    if root is None or root.boot != boot_id() or root.pid in table.by_pid:
        return []
    session = table.by_session.get(root.pid, ())
    return [process for process in session if process.started >= root.started and process.stamp < own_stamp()]


def _ourselves(table: ProcessTable) -> set[int]:
    """This process and all it came from: never signalled."""
    return {1, *(process.pid for process in table.line(os.getpid()))}


def _signal(processes: Iterable[Identity], number: signal.Signals) -> None:
    for identity in processes:
        send(identity, number)


def _cannot_end(left: Iterable[Identity]) -> TimedOut:
    pids = ", ".join(str(pid) for pid in sorted(identity.pid for identity in left))
    return TimedOut(
        f"Some processes could not be ended (pid {pids}).",
        hint=f"See what holds them with `ps -o pid,user,stat,args -p {pids.replace(' ', '')}`.",
    )
