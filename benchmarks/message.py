"""From an accepted message to a reader that has it, beside bare SQLite and an event of the loop."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from measure import Result, percentile
from whole import repository, whole

from windlass.core.nouns.message import Kind, Message, Receipt
from windlass.core.ports.store import Reading, Writing
from windlass.engine import Engine
from windlass.engine.projects.tasks import Order
from windlass.engine.records.messages import channel_of, say

WAIT = 30.0


def message(*, quick: bool) -> Sequence[Result]:
    """An answer to an agent's question; its reader listens to the bell and reads the channel, as surfaces do."""
    ours, bare = asyncio.run(_measure(100 if quick else 400))
    what = "an answer is accepted, durably → its reader has it"
    return [
        Result(
            name="message",
            what=f"{what} / bare SQLite and an event of the loop",
            unit="ms",
            ours=percentile(ours, 0.5),
            floor=percentile(bare, 0.5),
            goal=5.0,
        ),
        Result(
            name="message-p99",
            what=f"{what}, the slowest of a hundred",
            unit="ms",
            ours=percentile(ours, 0.99),
            goal=20,
        ),
    ]


async def _measure(rounds: int) -> tuple[list[float], list[float]]:
    with tempfile.TemporaryDirectory(prefix="wl") as folder:
        place = Path(folder)
        path = place / "bare.db"
        bare = sqlite3.connect(path, isolation_level=None)
        bare.executescript(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE messages (place INTEGER PRIMARY KEY, body)"
        )
        reader = sqlite3.connect(path, isolation_level=None)
        source = repository(place / "repo", 10)
        async with whole(place / "home") as engine:
            ear = engine.bell.ear(output=True)
            order = Order(path=str(source), title="Ask", provider="command", options={"command": "exec sleep 600"})
            task, agent = await engine.tasks.add(order)
            pairs = [
                (await _ours(engine, ear, agent.id, task.id), await _floor(bare, reader, at)) for at in range(rounds)
            ]
        for each in (bare, reader):
            each.close()
    ours, floor = zip(*pairs, strict=True)
    return list(ours), list(floor)


async def _ours(engine: Engine, ear: asyncio.Event, agent: str, task: str) -> float:
    """Milliseconds from the moment when the answer is accepted."""
    channel, store, now = channel_of(task), engine.ports.store, engine.ports.clock.now()

    def ask(writing: Writing) -> Message:
        for each in writing.undelivered(reader=agent):  # else more and more would wait, as it never happens
            writing.record("message.read", each.message, each.move(Receipt.READ))
        return say(writing, sender=agent, to=("human",), body="Which?", channel=channel, now=now, kind=Kind.ASK)

    asked = await store.write(ask)
    after = int(asked.id[1:])

    async def listen() -> float:
        while True:
            ear.clear()
            if await store.read(partial(_after, channel, after)):
                return time.perf_counter()
            await asyncio.wait_for(ear.wait(), WAIT)

    listening = asyncio.create_task(listen())
    await asyncio.sleep(0.005)  # so that the reader has looked, and listens
    await engine.talk.answer(agent, ["That one."])
    accepted = time.perf_counter()
    return (await listening - accepted) * 1000


def _after(channel: str, number: int, reading: Reading) -> list[Message]:
    return reading.messages(channel, after=number)


async def _floor(bare: sqlite3.Connection, reader: sqlite3.Connection, number: int) -> float:
    rung = asyncio.Event()

    async def listen() -> float:
        await rung.wait()
        reader.execute("SELECT body FROM messages WHERE place > ?", (number,)).fetchall()
        return time.perf_counter()

    listening = asyncio.create_task(listen())
    await asyncio.sleep(0.005)
    bare.execute("INSERT INTO messages (body) VALUES ('That one.')")
    accepted = time.perf_counter()
    rung.set()
    return (await listening - accepted) * 1000
