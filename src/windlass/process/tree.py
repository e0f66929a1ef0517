"""Ending a whole tree of processes, also what left its session or dropped its environment."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterable, Mapping

from windlass.core.errors import TimedOut
from windlass.core.run import Identity
from windlass.process.exits import all_gone
from windlass.process.identity import send
from windlass.process.proc import Process, boot_id, census

Census = Mapping[int, Process]

_SHIM_TIME = 1.0
_KILL_TIME = 10.0


class Survey:
    """Looks at all processes. Those who ask before a look has begun share it: stopping many at once stays cheap."""

    def __init__(self) -> None:
        self._one_at_a_time = asyncio.Lock()
        self._next: asyncio.Task[Census] | None = None

    async def __call__(self) -> Census:
        if self._next is None:
            self._next = asyncio.create_task(self._look())
        return await asyncio.shield(self._next)

    async def _look(self) -> Census:
        async with self._one_at_a_time:
            self._next = None  # who asks from now on may want to see what happens during this look
            return await asyncio.to_thread(census)


class Tree:
    """The processes of one run or check. What was once seen as a member stays one, wherever it moves."""

    def __init__(
        self, survey: Callable[[], Awaitable[Census]], ours: Callable[[str], bool], *, root: Identity | None = None
    ) -> None:
        self._survey = survey
        self._ours = ours
        self._root = root
        self._seen: set[Identity] = set()

    async def end(self, *, grace: float, spare: Identity | None = None) -> int:
        """Ask all to end, kill those that do not. `spare` is killed last: a shim that still has to tell the end.

        Returns how many processes there were.
        """
        members = await self._members()
        if not members:
            return 0
        if grace > 0:
            _signal(members - {spare}, signal.SIGTERM)
            await all_gone(members, grace)
        if await self._members():
            await self._kill(spare)
        return len(self._seen)

    async def _kill(self, spare: Identity | None) -> None:
        await self._freeze(spare)
        _signal(self._seen - {spare}, signal.SIGKILL)
        await all_gone(self._seen, _SHIM_TIME)
        deadline = asyncio.get_running_loop().time() + _KILL_TIME
        while left := await self._members():
            if asyncio.get_running_loop().time() > deadline:
                raise _cannot_end(left)
            _signal(left, signal.SIGKILL)
            await all_gone(left, _SHIM_TIME)

    async def _freeze(self, spare: Identity | None) -> None:
        """Halt all before any is killed: else one could fork in between, and its child be lost from sight."""
        frozen: set[Identity] = set()
        while new := await self._members() - frozen - {spare}:
            _signal(new, signal.SIGSTOP)
            frozen |= new

    async def _members(self) -> set[Identity]:
        """Those that live now."""
        found = members(await self._survey(), self._ours, self._root, self._seen)
        self._seen |= found
        return found


def members(
    processes: Census, ours: Callable[[str], bool], root: Identity | None = None, seen: Iterable[Identity] = ()
) -> set[Identity]:
    """Who belongs to the tree: by marker, as root, as seen before, and all that came out of these."""
    exempt = _ourselves(processes)
    known = {each.pid for each in (*seen, *([root] if root else [])) if _is(processes, each)}
    known |= {each.pid for each in processes.values() if each.marker and ours(each.marker)}
    known -= exempt
    known |= _orphans(processes, ours, root) - exempt
    while more := _offspring(processes, known) - known - exempt:
        known |= more
    return {processes[pid].identity for pid in known}


def _offspring(processes: Census, known: set[int]) -> set[int]:
    """Children of the known, and those in a session that one of the known leads, or led."""
    led = {processes[pid].session for pid in known}
    sessions = known | {each for each in led if each and each not in processes}
    return {each.pid for each in processes.values() if each.parent in known or each.session in sessions}


def _orphans(processes: Census, ours: Callable[[str], bool], root: Identity | None) -> set[int]:
    """Those left in the session of a root that has gone. Its number is not given again while they live."""
    if root is None or root.boot != boot_id() or root.pid in processes:
        return set()
    return {
        each.pid
        for each in processes.values()
        if each.session == root.pid and each.started >= root.started and (not each.marker or ours(each.marker))
    }


def _ourselves(processes: Census) -> set[int]:
    """This process and all it came from: never signalled."""
    pid, line = os.getpid(), {1}
    while pid in processes and pid not in line:
        line.add(pid)
        pid = processes[pid].parent
    return line


def _is(processes: Census, identity: Identity) -> bool:
    found = processes.get(identity.pid)
    return found is not None and found.identity == identity


def _signal(processes: Iterable[Identity], number: signal.Signals) -> None:
    for each in processes:
        send(each, number)


def _cannot_end(left: Iterable[Identity]) -> TimedOut:
    pids = ", ".join(str(pid) for pid in sorted(each.pid for each in left))
    return TimedOut(
        f"Some processes could not be ended (pid {pids}).",
        hint=f"See what holds them with `ps -o pid,user,stat,args -p {pids.replace(' ', '')}`.",
    )
