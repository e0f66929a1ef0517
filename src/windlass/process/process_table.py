"""All processes at one moment, arranged by what binds them together."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator

from windlass.core.nouns.run import Identity
from windlass.process.proc import Process, living


class ProcessTable:
    """Every living process: by pid, by stamp, by parent and by session."""

    def __init__(self, processes: Iterable[Process]) -> None:
        self.by_pid: dict[int, Process] = {}
        self.by_stamp: defaultdict[int, list[Process]] = defaultdict(list)
        self.by_parent: defaultdict[int, list[Process]] = defaultdict(list)
        self.by_session: defaultdict[int, list[Process]] = defaultdict(list)
        for process in processes:
            self.by_pid[process.pid] = process
            self.by_parent[process.parent].append(process)
            self.by_session[process.session].append(process)
            self.by_stamp[process.stamp].append(process)

    def has(self, identity: Identity) -> bool:
        """Whether this very process was there."""
        found = self.by_pid.get(identity.pid)
        return found is not None and found.identity == identity

    def descends(self, process: Process, leaders: Container[Identity]) -> bool:
        """Whether a process is one of these leaders, or below one."""
        return any(member.identity in leaders for member in self.line(process.pid))

    def line(self, pid: int) -> Iterator[Process]:
        """A process and all it comes from."""
        seen: set[int] = set()
        while pid in self.by_pid and pid not in seen:
            seen.add(pid)
            yield self.by_pid[pid]
            pid = self.by_pid[pid].parent


class Survey:
    """Reads the process table. Callers that ask before a reading begins share it: stopping many runs stays cheap."""

    def __init__(self) -> None:
        self._one_at_a_time = asyncio.Lock()
        self._next: asyncio.Task[ProcessTable] | None = None

    async def __call__(self) -> ProcessTable:
        if self._next is None:
            self._next = asyncio.create_task(self._take())
        return await asyncio.shield(self._next)

    async def _take(self) -> ProcessTable:
        async with self._one_at_a_time:
            self._next = None  # who asks from now on may want to see what happens meanwhile
            return await asyncio.to_thread(lambda: ProcessTable(living()))
