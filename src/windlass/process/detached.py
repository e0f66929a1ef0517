"""The processes of runs: detached from us, so that they outlive a daemon and the next one finds them."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from signal import Signals

from windlass.core.errors import WindlassError
from windlass.core.nouns.run import Identity
from windlass.core.ports.processes import Launch
from windlass.core.runs.sandbox import SandboxKeeper
from windlass.process.end_tree import ProcessTree, stamped_processes
from windlass.process.environment import FOLDER, granted, with_us
from windlass.process.proc import Process, age_of, environment_of, is_alive, words_of
from windlass.process.process_table import ProcessTable, Survey
from windlass.process.run_folder import RunFolder
from windlass.process.sandbox.bubblewrap import Bubblewrap, is_bubblewrap
from windlass.process.stamp import is_command, is_of, run_stamp
from windlass.process.starting.shim import DEFAULT_PATH, is_shim, start_shim
from windlass.process.starting.spawner import Spawner
from windlass.process.watching.exits import on_exit
from windlass.process.watching.output import FolderWatch

_STARTERS = 2
FEW = 16
"""Processes that are looked up without a thread: some twenty microseconds each."""


class DetachedProcesses:
    """The `Processes` port for Linux. Each run has a folder under `runs`, and a stamp with our home in it."""

    def __init__(self, runs: Path, home_id: str, spawner: Spawner) -> None:
        self.leaders: dict[Identity, str] = {}
        """The live runs by their first process. What descends from it belongs to the run, and nothing else does."""
        self._runs = runs.absolute()
        self._home = home_id
        self._spawner = spawner
        self._starters = ThreadPoolExecutor(_STARTERS, thread_name_prefix="windlass-start")
        self._survey = Survey()
        self._bubblewrap = Bubblewrap()
        self._tail = FolderWatch()
        self._followed: dict[str, tuple[Callable[[], None], ...]] = {}

    async def start(self, launch: Launch, /) -> Identity:
        """Start a run's program; the loop goes on meanwhile, also while hundreds are started."""
        folder = RunFolder.of(self._runs, launch.run)
        given = granted(os.environ, launch.keeps)
        environment = given | dict(launch.environment)
        return await asyncio.get_running_loop().run_in_executor(
            self._starters, self._start, launch, folder, environment
        )

    async def find(self, run: str, /) -> Identity | None:
        """The topmost living process with this run's stamp that no other run started: its shim, while that lives."""
        found = stamped_processes(await self._survey(), self._stamp(run).__eq__, self._others(run))
        top = min(
            found, key=lambda process: (process.pid != process.session, process.started, process.pid), default=None
        )
        return top.identity if top else None

    async def alive(self, *identities: Identity) -> frozenset[Identity]:
        """Those that live, as /proc says; many are looked up in a thread, so that the loop goes on."""
        if len(identities) <= FEW:
            return frozenset(filter(is_alive, identities))
        return await asyncio.to_thread(lambda: frozenset(filter(is_alive, identities)))

    async def age(self, identity: Identity, /) -> float:
        return age_of(identity)

    async def strays(self, runs: Collection[str], /) -> tuple[int, ...]:
        known = {self._stamp(run) for run in runs}

        def unknown(stamp: int) -> bool:
            return is_of(self._home, stamp) and not is_command(stamp) and stamp not in known

        found = stamped_processes(await self._survey(), unknown, self.leaders)
        return tuple(sorted(process.pid for process in found))

    async def stop(self, run: str, identity: Identity | None, *, grace: float, gently: str = "TERM") -> int:
        """End the run's whole tree, the shim last so that it can tell the exit code."""
        root = identity or await self.find(run)
        tree = ProcessTree(
            self._survey,
            self._stamp(run).__eq__,
            root=root,
            others=self._others(run),
            spares=partial(_keepers, root),
        )
        return await tree.end(grace=grace, gently=Signals[f"SIG{gently}"])

    def know(self, run: str, identity: Identity) -> None:
        """Know the run of a process that an earlier daemon started."""
        self.leaders[identity] = run

    def follow(self, run: str, identity: Identity, stir: Callable[[str], None], /, *places: str) -> None:
        """Stir now, and whenever the run's folder or one of these places changes, or its process has gone."""
        self._unfollow(run)
        self.know(run, identity)
        tell = partial(stir, run)
        self._followed[run] = (
            asyncio.get_running_loop().call_soon(tell).cancel,
            self._tail.watch(RunFolder.of(self._runs, run).path, tell),
            on_exit(identity, tell),
            *(self._tail.listen(Path(place), tell) for place in places),
        )

    def listen(self, folder: Path, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` on the loop after each change in a folder; where the kernel can't tell us, never."""
        return self._tail.listen(folder, changed)

    def forget(self, run: str, /) -> None:
        self._unfollow(run)
        self._disown(run)

    def _disown(self, run: str) -> None:
        for leader, led in tuple(self.leaders.items()):  # a copy: other threads start runs meanwhile
            if led == run:
                del self.leaders[leader]

    def _unfollow(self, run: str) -> None:
        for end in self._followed.pop(run, ()):
            end()

    async def output(self, run: str, offset: int, limit: int, /) -> bytes:
        return RunFolder.of(self._runs, run).read_output(offset, limit)

    async def output_shared(self, run: str, /) -> bool:
        return RunFolder.of(self._runs, run).is_output_shared()

    async def drop_output(self, run: str, length: int, /) -> bool:
        return await asyncio.to_thread(RunFolder.of(self._runs, run).drop_output, length)

    async def exit_code(self, run: str, /) -> int | None:
        return RunFolder.of(self._runs, run).read_exit()

    async def sandbox_keeper(self) -> SandboxKeeper:
        return await asyncio.get_running_loop().run_in_executor(self._starters, self._bubblewrap.keeper)

    async def values(self, names: Sequence[str], identity: Identity | None, /) -> tuple[str, ...]:
        theirs = environment_of(identity.pid) if identity and is_alive(identity) else {}
        found = (environment.get(name, "") for name in names for environment in (os.environ, theirs))
        return tuple(dict.fromkeys(filter(None, found)))

    async def overwrite(self, run: str, offset: int, content: bytes, /) -> None:
        RunFolder.of(self._runs, run).overwrite_output(offset, content)

    async def discard(self, folder: str, /) -> None:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    def close(self) -> None:
        """Forget all runs and close every descriptor. The processes go on."""
        for run in tuple(self._followed):
            self._unfollow(run)
        self._tail.close()
        self._starters.shutdown(wait=False)

    def _start(self, launch: Launch, folder: RunFolder, environment: dict[str, str]) -> Identity:
        found = with_us(environment.get("PATH", DEFAULT_PATH), self._runs.with_name(FOLDER))
        begin = partial(self._spawner.spawn, stamp=self._stamp(launch.run), known=partial(self.know, launch.run))
        try:
            return start_shim(launch, folder, environment | {"PATH": found}, self._bubblewrap, begin)
        except WindlassError:
            self._disown(launch.run)
            raise

    def _stamp(self, run: str) -> int:
        return run_stamp(self._home, run)

    def _others(self, run: str) -> set[Identity]:
        """The leaders of other runs."""
        return {leader for leader, led in tuple(self.leaders.items()) if led != run}


def _keepers(root: Identity | None, table: ProcessTable) -> Iterator[Identity]:
    """A run's shim, and bubblewrap below it (outside and inside): they end by themselves and tell how it ended."""
    if root is None or not table.has(root) or not is_shim(root):
        return
    yield root
    for outer in _bubblewraps(table, root.pid):
        yield outer.identity
        yield from (inner.identity for inner in _bubblewraps(table, outer.pid))


def _bubblewraps(table: ProcessTable, parent: int) -> Iterator[Process]:
    return (child for child in table.by_parent.get(parent, ()) if is_bubblewrap(words_of(child.pid)))
