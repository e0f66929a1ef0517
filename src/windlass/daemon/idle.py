"""When a daemon that started by itself may leave."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from windlass.core.change import Change, ChangeState, Hold
from windlass.core.store import Reading
from windlass.core.task import TaskState
from windlass.daemon.boot import Building
from windlass.engine.instances import live

log = logging.getLogger("windlass")

LOOK_EVERY = 5.0


async def leave_when_idle(building: Building, home: Path, leaving: asyncio.Event) -> None:
    """Leave when nothing has happened for a while and nothing can call for us; at once if the home is gone."""
    clock, store = building.engine.ports.clock, building.engine.ports.store
    seen, needed, since = -1, True, clock.monotonic()
    while not leaving.is_set():
        await asyncio.sleep(LOOK_EVERY)
        if not (home / "daemon.sock").exists():
            log.info("the home is gone")
            leaving.set()
            return
        last = await store.read(lambda reading: reading.last_seq())
        if last != seen:  # else nothing is different from what it was
            seen, needed, since = last, await store.read(is_needed), clock.monotonic()
        elif needed:
            since = clock.monotonic()
        minutes = building.settings.at("").daemon.idle_minutes
        if minutes and clock.monotonic() - since > minutes * 60:
            log.info("idle for %s minutes", minutes)
            leaving.set()


def is_needed(store: Reading) -> bool:
    """Whether something may still move by itself."""
    moving = any(each.state in (TaskState.OPEN, TaskState.ACTIVE) for each in store.unfinished_tasks())
    return moving or bool(store.live_runs() or live(store)) or any(map(_may_land, store.changes()))


def _may_land(change: Change) -> bool:
    """Whether it needs no word from a person: a checkout is looked at again and again."""
    return change.state in (ChangeState.QUEUED, ChangeState.TESTING) or change.hold in (Hold.CHECKOUT, Hold.TROUBLE)
