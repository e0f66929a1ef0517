"""The loop of each tick: it waits for the bell, or for a timer in case a ring was lost."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from windlass.engine import Engine, Rhythm
from windlass.engine.troubles import Troubles

LONGEST_PAUSE = 60.0
A_MOMENT = 0.002
"""Seconds between a ring and our own work: whoever reads along is served first, and close rings are one."""


async def keep_all(engine: Engine) -> None:
    """Run every tick for ever, each in a loop of its own."""
    async with asyncio.TaskGroup() as group:
        for name, rhythm in engine.ticks.items():
            group.create_task(keep(name, rhythm, engine.troubles), name=name)


async def keep(name: str, rhythm: Rhythm, troubles: Troubles) -> None:
    """Run a tick when its ear is set, and at least every so often in case a ring was lost."""
    ear, failures = rhythm.ear, 0
    while True:
        ear.clear()  # before the work, so that a ring during the work is not lost
        try:
            while await rhythm.tick():
                pass
            failures = 0
        except Exception as error:  # noqa: BLE001 - a tick must never die silently
            troubles.report(name, error)
            failures += 1
            await asyncio.sleep(min(LONGEST_PAUSE, 0.1 * 2**failures))
        with suppress(TimeoutError):
            async with asyncio.timeout(rhythm.every):  # `wait_for` may overhear that it was told to leave
                await ear.wait()
                await asyncio.sleep(A_MOMENT)
