"""The store while the daemon runs: a copy every hour, and a daemon that leaves if its file is gone."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from windlass.core.errors import Unavailable
from windlass.daemon.boot import Program
from windlass.daemon.lifecycle import STORE
from windlass.store.copies import copy_of

LOOK_EVERY = 5.0
AN_HOUR = 3600.0
LEAVES = (
    "The daemon leaves, so that nothing is written that would be lost; `windlass doctor --restore` puts back what the "
    "store knew."
)


async def look_after_store(building: Program, home: Path, leaving: asyncio.Event) -> None:
    """Copy the store once an hour if something has changed. Leave if its file is gone: closing it keeps all it knew."""
    copied = -1
    while not leaving.is_set():
        await asyncio.sleep(LOOK_EVERY)
        if problem := building.store.lost():
            leaving.set()
            building.engine.troubles.report("store", Unavailable(problem, hint=LEAVES))
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
