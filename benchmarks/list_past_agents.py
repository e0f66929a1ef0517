"""Listing agents with 10,000 finished ones, beside the same page with 100."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from measure import Result, interleaved

from windlass.core.nouns.agent import Agent
from windlass.core.nouns.run import Outcome, Run
from windlass.core.ports.store import Reading, Writing
from windlass.daemon.clock import SystemClock
from windlass.store.sqlite import SqliteStore

PAGE = 100


def list_past_agents(*, quick: bool) -> Sequence[Result]:
    """The newest hundred, with their last runs, last words and costs."""
    with tempfile.TemporaryDirectory(prefix="wl") as folder:
        few, many = (_store(Path(folder) / f"{count}.db", count) for count in (100, 10_000))
        ours, floor = interleaved(lambda: _timed(many), lambda: _timed(few), rounds=9 if quick else 21)
        for store in (few, many):
            asyncio.run(store.close())
    what = "a page with 10,000 past agents / with 100"
    return [Result(name="list", what=what, unit="ms", ours=ours, floor=floor, goal=1.2)]


def _store(path: Path, count: int) -> SqliteStore:
    store = SqliteStore(str(path), SystemClock())
    asyncio.run(store.write(lambda writing: retire(writing, "p", count)))
    return store


def retire(writing: Writing, project: str, count: int) -> None:
    """So many agents who have done their work and gone."""
    for number in range(count):
        agent = Agent(
            name=f"past{number}", project=project, provider="command", created_at=float(number), retired_at=1e9
        )
        run = Run(
            id=writing.next_id(Run), agent=agent.id, task="t1", number=1, provider="command", outcome=Outcome.DONE
        )
        writing.record("agent.retired", agent.id, agent, run)


def _timed(store: SqliteStore) -> float:
    began = time.perf_counter()
    asyncio.run(store.read(_page))
    return (time.perf_counter() - began) * 1000


def _page(reading: Reading) -> None:
    agents = reading.agents(retired=True, limit=PAGE)
    runs = reading.latest_runs([agent.id for agent in agents])
    reading.last_output([run.id for run in runs.values()])
    reading.costs([agent.id for agent in agents])
