"""What carries every tick: the bell, or a timer in case a ring was lost."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from windlass.engine import Engine, Tick
from windlass.engine.bell import Bell
from windlass.engine.troubles import Troubles

LONGEST_PAUSE = 60.0


async def keep_all(engine: Engine) -> None:
    """Run every tick for ever, each in a loop of its own."""
    async with asyncio.TaskGroup() as group:
        for name, (tick, every) in engine.ticks.items():
            group.create_task(keep(name, tick, engine.bell, engine.troubles, every=every), name=name)


async def keep(name: str, tick: Tick, bell: Bell, troubles: Troubles, *, every: float) -> None:
    """Run `tick` when the bell rings, and at least every `every` seconds."""
    ear = bell.ear()
    failures = 0
    while True:
        ear.clear()  # before the work, so that a ring during the work is not lost
        try:
            while await tick():
                pass
            failures = 0
        except Exception as error:  # noqa: BLE001 - a tick must never die silently
            troubles.report(name, error)
            failures += 1
            await asyncio.sleep(min(LONGEST_PAUSE, 0.1 * 2**failures))
        with suppress(TimeoutError):
            await asyncio.wait_for(ear.wait(), every)
