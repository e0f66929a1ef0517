"""What is left in the daemon of those who listened to it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import patience
from windlass.daemon.boot import build
from windlass.daemon.lifecycle import HomeLock, hang_up, listen, prepare_home
from windlass.daemon.serving.server import DaemonServer
from windlass.daemon.serving.shares import Shares
from windlass.engine import Engine
from windlass.web.app import build as build_app

DEADLINE = patience.seconds(20)


@asynccontextmanager
async def served(home: Path) -> AsyncIterator[Engine]:
    """The whole daemon but its ticks, in this process: nothing moves but by those who call."""
    leaving = asyncio.Event()
    async with build(home, leaving.set) as building:
        server = DaemonServer(
            build_app(building.engine, building.context, building.authenticator, building.tools),
            listen(home),
            building.identify,
            Shares(100),
        )
        serving = asyncio.create_task(server.run_until(leaving, building.engine.bell.fall_silent))
        yield building.engine
        hang_up(home)
        leaving.set()
        await serving


async def subscribe(home: Path) -> asyncio.StreamWriter:
    """Ask for events, and see that the answer has begun."""
    reader, writer = await asyncio.open_unix_connection(home / "daemon.sock")
    writer.write(b"GET /events HTTP/1.1\r\nHost: windlass\r\n\r\n")
    assert b"200 OK" in await reader.readuntil(b"id: ")
    return writer


async def at_work(most: int) -> int:
    """How many tasks there are, once there are no more than this, or when it is too late for that."""
    deadline = time.monotonic() + DEADLINE
    while len(asyncio.all_tasks()) > most and time.monotonic() < deadline:  # noqa: ASYNC110 - no event tells of tasks
        await asyncio.sleep(0.01)
    return len(asyncio.all_tasks())


def test_nobody_works_on_for_a_subscriber_who_has_vanished() -> None:
    """While nothing happens there is nothing to send, by which it would be noticed: the hang-up itself must be."""
    home = Path(os.environ["WINDLASS_HOME"])

    async def story() -> None:
        async with served(home):
            stayer = await subscribe(home)
            before = len(asyncio.all_tasks())
            leavers = [await subscribe(home) for _ in range(20)]
            assert len(asyncio.all_tasks()) >= before + 20
            for leaver in leavers:
                leaver.close()
            assert await at_work(before) == before
            stayer.close()

    prepare_home(home)
    with HomeLock(home):
        asyncio.run(story())
