"""The store while the daemon runs: a copy every hour, and a daemon that leaves if its file is gone."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path

from windlass.core.errors import Unavailable
from windlass.daemon.boot import Program
from windlass.daemon.lifecycle import STORE
from windlass.store.copies import copy_of

log = logging.getLogger("windlass")

LOOK_EVERY = 5.0
AN_HOUR = 3600.0


async def look_after_store(building: Program, home: Path, leaving: asyncio.Event) -> None:
    """Copy the store once an hour if something has changed. If its file is gone, keep what we know, and leave."""
    copied = -1
    while not leaving.is_set():
        await asyncio.sleep(LOOK_EVERY)
        if problem := building.store.lost():
            await _rescue(building, home, problem)
            leaving.set()
            return
        with building.engine.troubles.noted("store"):
            last = await building.store.read(lambda store: store.last_seq())
            if last != copied and is_due(home):
                await building.store.copy()
                copied = last


def is_due(home: Path) -> bool:
    """Whether the copy is missing, or an hour old."""
    try:
        age = time.time() - copy_of(home / STORE).stat().st_mtime
    except OSError:
        return True
    return not 0.0 <= age < AN_HOUR  # also after the clock was set back


async def _rescue(building: Program, home: Path, problem: str) -> None:
    """The open file still has everything: copy it, unless the whole home is gone."""
    hint = "The daemon leaves, so that nothing is written that would be lost."
    building.engine.troubles.report("store", Unavailable(problem, hint=hint))
    if (home / "daemon.sock").is_symlink():
        with building.engine.troubles.noted("store"):
            await building.store.copy()
            log.error("what the store knew is kept as %s; see `windlass doctor --restore`", copy_of(home / STORE))
