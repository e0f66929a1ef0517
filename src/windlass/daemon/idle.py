"""When a daemon that started by itself may leave."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from windlass.core.nouns.change import ChangeState, Hold
from windlass.core.nouns.task import TaskState
from windlass.core.ports.store import Reading
from windlass.daemon.boot import Program
from windlass.engine.chatfiles.files import ChatFile

log = logging.getLogger("windlass")

LOOK_EVERY = 5.0
A_DAY = 24 * 3600.0
"""Seconds for which a line in a project's chat file keeps us: whoever wrote it may write the next one."""
LOOK_BACK = 200
"""Messages of a project among which the last such line is looked for."""


async def leave_when_idle(building: Program, home: Path, leaving: asyncio.Event) -> None:
    """Leave when nothing has happened for a while and nothing can call for us; at once if the home is gone."""
    clock, store = building.engine.ports.clock, building.engine.ports.store
    seen, needed, until, since = -1, True, 0.0, clock.monotonic()
    while not leaving.is_set():
        await asyncio.sleep(LOOK_EVERY)
        if not (home / "daemon.sock").exists():
            log.info("the home is gone")
            leaving.set()
            return
        last = await store.read(lambda reading: reading.last_seq())
        if last != seen:  # else nothing is different from what it was
            seen, needed, since = last, await store.read(is_needed), clock.monotonic()
            until = await store.read(watched_until)
        elif needed or building.engine.bell.followed or clock.now() < until:
            since = clock.monotonic()
        minutes = building.settings.at("").daemon.idle_minutes
        if minutes and clock.monotonic() - since > minutes * 60:
            log.info("idle for %s minutes", minutes)
            leaving.set()


def is_needed(store: Reading) -> bool:
    """Whether something may still move by itself."""
    moving = any(task.state in (TaskState.OPEN, TaskState.ACTIVE) for task in store.unfinished_tasks())
    # Also a change whose way a checkout bars needs no word from a person: that is looked at again and again.
    landing, held = (ChangeState.QUEUED, ChangeState.TESTING), (Hold.CHECKOUT, Hold.TROUBLE)
    may_land = any(change.state in landing or change.hold in held for change in store.changes())
    return moving or may_land or bool(store.live_runs() or store.instances(live=True))


def watched_until(store: Reading) -> float:
    """Until when a project's chat file is to be followed, because a person or a program has written there."""
    last = 0.0
    for project in store.projects():
        file, said = ChatFile(project, None, project.path), store.said(project.id, limit=LOOK_BACK)
        last = max((last, *(message.sent_at for message in said if file.wrote(message))))
    return last + A_DAY if last else 0.0
