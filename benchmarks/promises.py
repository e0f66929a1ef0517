"""`doctor --check` on a journal of 120,000 events, beside bare Python that reads and parses as many."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from crowd import PROJECT, populate
from measure import Result
from outside import outside

from windlass.core.nouns.message import Delivery, Message
from windlass.core.ports.store import Writing
from windlass.daemon.clock import SystemClock
from windlass.store.sqlite import SqliteStore

EVENTS, FEWER = 120_000, 12_000
STEP = 4_000

FLOOR = """
import json, sqlite3, sys
store = sqlite3.connect(f"file:{sys.argv[1]}/windlass.db?mode=ro", uri=True)
rows = store.execute("SELECT seq, kind, subject, payload FROM events")
print(sum(1 for row in rows if json.loads(row[3]) is not None))
"""


def promises(*, quick: bool) -> Sequence[Result]:
    """The first look at everything, and the next one, for which most of it was verified before."""
    events = FEWER if quick else EVENTS
    with tempfile.TemporaryDirectory(prefix="wl") as folder:
        home = Path(folder) / "home"
        populate(home, [])
        asyncio.run(_fill(home, events))
        floor = _floor(home, events)
        with outside(home) as asked:
            asked.until_quiet()
            first, again = (asked.windlass("doctor", "--check", may_fail=True) / 1000 for _ in range(2))
    what = f"`doctor --check` at {events} events"
    return [
        Result(
            name="promises-first", what=f"{what}, the first / reading them", unit="s", ours=first, floor=floor, goal=20
        ),
        Result(name="promises", what=f"{what}, when most was verified before", unit="s", ours=again, goal=3.0),
    ]


async def _fill(home: Path, events: int) -> None:
    """Messages that their readers have: two events for each."""
    store = SqliteStore(str(home / "windlass.db"), SystemClock())
    for start in range(0, events, STEP):
        await store.write(partial(_say, min(STEP, events - start)))
    await store.close()


def _say(count: int, writing: Writing) -> None:
    for number in range(count):
        said = Message(
            id=writing.next_id(Message),
            project=PROJECT.id,
            channel="main",
            sender="human",
            to=("human",),
            body=f"Word {number}, and some more of them.",
        )
        writing.record("message.sent", said.id, said, Delivery(message=said.id, reader="human"))


def _floor(home: Path, events: int) -> float:
    with closing(sqlite3.connect(f"file:{home}/windlass.db?mode=ro", uri=True)) as store:
        found = int(store.execute("SELECT count(*) FROM events").fetchone()[0])
    if found < events:
        raise ValueError(f"The journal has {found} events instead of {events}.")
    began = time.perf_counter()
    subprocess.run([sys.executable, "-I", "-c", FLOOR, str(home)], check=True, capture_output=True)
    return time.perf_counter() - began
