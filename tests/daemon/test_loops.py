"""What carries the ticks, and how it is told to leave."""

from __future__ import annotations

import asyncio

import pytest

import patience
from windlass.daemon.clock import SystemClock
from windlass.daemon.loops import keep
from windlass.engine import Rhythm
from windlass.engine.bell import Bell
from windlass.engine.troubles import Troubles


@pytest.mark.parametrize("turns", range(8))
def test_a_loop_leaves_when_told_to_at_the_moment_its_bell_rings(turns: int) -> None:
    """Wherever the ring has got to: a loop that goes on keeps the daemon from leaving, for ever."""

    async def tick() -> bool:
        return False

    async def story() -> None:
        ear = asyncio.Event()
        loop = asyncio.create_task(keep("tick", Rhythm(tick, 3600.0, ear), Troubles(SystemClock(), Bell())))
        for _ in range(5):
            await asyncio.sleep(0)  # it waits for its bell now
        ear.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        loop.cancel()
        ended, _ = await asyncio.wait([loop], timeout=patience.seconds(5))
        loop.cancel()
        assert loop in ended

    asyncio.run(story())
