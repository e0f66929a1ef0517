"""The pack tick: output of runs that have ended is kept once, and in little room."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from windlass.core.nouns.run import Chunk, Run
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading, Writing
from windlass.core.runs.packed_output import pack
from windlass.engine.troubles import Troubles

log = logging.getLogger("windlass")

SETTLED_SECONDS = 7200.0
"""Seconds for which an ended run's output stays in its file: by then the hourly copy of the store has it, too."""
RUNS = 20
"""Runs that are packed at once; the next tick goes on."""
CHUNKS = 8
"""Chunks of one run that are packed at once."""

LITTLE = 32_000
"""Bytes that are packed at once; more of them in a thread."""


class Packing:
    """Removes a run's file when all of it is in the store, then packs what the store has. Each step can be repeated."""

    def __init__(self, ports: Ports, troubles: Troubles) -> None:
        self.store = ports.store
        self.processes = ports.processes
        self.clock = ports.clock
        self.troubles = troubles

    async def tick(self) -> bool:
        """Pack the output of some runs. Says whether there may be more."""
        settled = self.clock.now() - SETTLED_SECONDS
        runs = await self.store.read(lambda store: store.unpacked_runs(before=settled, limit=RUNS))
        failed = False
        for run in runs:
            failed = True
            with self.troubles.noted("pack"):
                await self._settle(run)
                failed = False
            if failed:
                break  # else it would be the first of the next ones, without end
        return len(runs) == RUNS and not failed

    async def _settle(self, run: Run) -> None:
        """The file first: what is not packed yet says that there is something left to do here."""
        end = await self.store.read(lambda store: store.output_end(run.id))
        if await self._is_all_kept(run, end) and await self.processes.drop_output(run.id, end - run.cut):
            log.info("removed the file of run %s's output: the store has all of it", run.id)
        while chunks := await self.store.read(lambda store: store.unpacked(run.id, limit=CHUNKS)):
            for chunk in chunks:
                little = len(chunk.content) <= LITTLE
                form, content = pack(chunk.content) if little else await asyncio.to_thread(pack, chunk.content)
                await self.store.write(partial(_pack, chunk, form, content))

    async def _is_all_kept(self, run: Run, end: int) -> bool:
        """Whether the file has what the store has, byte for byte, and no more."""
        offset = run.cut
        while offset < end:
            for chunk in await self.store.read(partial(_chunks, run.id, offset)):
                kept = chunk.content[offset - chunk.offset :]
                if await self.processes.output(run.id, offset - run.cut, len(kept)) != kept:
                    return False
                offset = chunk.end
        return True


def _chunks(run: str, offset: int, store: Reading) -> list[Chunk]:
    return store.chunks(run, offset=offset, limit=CHUNKS)


def _pack(chunk: Chunk, form: str, content: bytes, store: Writing) -> None:
    store.pack(chunk.run, chunk.offset, form, content)
