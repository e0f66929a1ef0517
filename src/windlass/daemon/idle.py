"""When a daemon that started by itself may leave."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from windlass.core.change import ChangeState
from windlass.core.ports import Reading
from windlass.core.task import TaskState
from windlass.daemon.boot import Building

log = logging.getLogger("windlass")

LOOK_EVERY = 5.0


async def leave_when_idle(building: Building, home: Path, leaving: asyncio.Event) -> None:
    """Leave when nothing has happened for a while and nothing can call for us; at once if the home is gone."""
    clock, store = building.engine.ports.clock, building.engine.ports.store
    seen, since = -1, clock.monotonic()
    while not leaving.is_set():
        await asyncio.sleep(LOOK_EVERY)
        if not (home / "daemon.sock").exists():
            log.info("the home is gone")
            leaving.set()
            return
        last, needed = await store.read(lambda reading: (reading.last_seq(), is_needed(reading)))
        if needed or last != seen:
            seen, since = last, clock.monotonic()
        minutes = building.settings.at("").daemon.idle_minutes
        if minutes and clock.monotonic() - since > minutes * 60:
            log.info("idle for %s minutes", minutes)
            leaving.set()


def is_needed(store: Reading) -> bool:
    """Whether something may still move by itself."""
    moving = any(each.state not in (TaskState.WAITING,) for each in store.unfinished_tasks())
    queue = any(each.state in (ChangeState.QUEUED, ChangeState.TESTING) for each in store.changes())
    return bool(store.live_runs()) or moving or queue
