"""What a message costs the daemon with 10,000 past agents, and in `main` with 100 live ones, beside one live agent."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from crowd import PROJECT, populate, sleepers, wait_until_followed
from list_past_agents import retire
from measure import Result
from outside import Outside, outside
from whole import repository

from windlass.daemon.clock import SystemClock
from windlass.store.sqlite import SqliteStore

PAST, LIVE = 10_000, 100


def send_flat(*, quick: bool) -> Sequence[Result]:
    """Processor time of the daemon until it rests again, for each message; three daemons, turn by turn."""
    rounds = 3 if quick else 9
    with tempfile.TemporaryDirectory(prefix="wl") as folder, ExitStack() as stack:
        source = repository(Path(folder) / "repo", 20)
        homes = {"one": (1, 0), "past": (1, PAST), "live": (LIVE, 0)}
        askeds = {name: _daemon(stack, Path(folder) / name, source, live, past) for name, (live, past) in homes.items()}
        for asked in askeds.values():
            _cost(asked, source)  # the first one imports what the others find
        turns = [{name: _cost(asked, source) for name, asked in askeds.items()} for _ in range(rounds)]
    one, past, live = (median(turn[name] for turn in turns) for name in homes)
    what = "processor time of a message in `main`"
    return [
        Result(
            name="send-past", what=f"{what} with {PAST} past agents / none", unit="ms", ours=past, floor=one, goal=1.2
        ),
        Result(
            name="send-live", what=f"{what} with {LIVE} live agents / one", unit="ms", ours=live, floor=one, goal=2.0
        ),
        Result(name="send-one", what=f"{what} with one live agent", unit="ms", ours=one, goal=3.0),
    ]


def _daemon(stack: ExitStack, home: Path, source: Path, live: int, past: int) -> Outside:
    identities = stack.enter_context(sleepers(live))
    populate(home, identities, repository=source)
    if past:
        asyncio.run(_add_past(home, past))
    asked = stack.enter_context(outside(home))
    wait_until_followed(asked.pid, live)
    asked.until_quiet()
    return asked


async def _add_past(home: Path, count: int) -> None:
    store = SqliteStore(str(home / "windlass.db"), SystemClock())
    await store.write(lambda writing: retire(writing, PROJECT.id, count))
    await store.close()


MESSAGES = 10
"""Sent one after the other before the daemon is asked what they cost, as its clock swings."""


def _cost(asked: Outside, source: Path) -> float:
    """Milliseconds of the daemon on a processor for one message, with all that follows from it."""
    asked.until_quiet()
    before = asked.busy()
    for number in range(MESSAGES):
        asked.ask("POST", "/messages", body=f"Word {number}", channel="main", path=str(source))
        time.sleep(0.2)
    return (asked.busy() - before) * 1000 / MESSAGES
