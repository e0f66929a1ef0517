"""What the tick of workflows costs when nothing happens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from stage import Stage

from fakes.store import MemoryStore
from windlass.core.nouns.task import Task, TaskState
from windlass.core.ports.store import Reading, Writing
from windlass.core.workflows.instance import Instance, InstanceEnding

T = TypeVar("T")


class CountingStore(MemoryStore):
    """A memory store that counts transactions, questions and the rows of their answers."""

    writes = questions = rows = 0

    async def write(self, step: Callable[[Writing], T], /) -> T:
        self.writes += 1
        return await super().write(step)

    async def read(self, question: Callable[[Reading], T], /) -> T:
        return await super().read(lambda store: question(cast(Reading, CountedReading(store, self))))


class CountedReading:
    """Passes questions on, and counts them."""

    def __init__(self, reading: Reading, counts: CountingStore) -> None:
        self._reading = reading
        self._counts = counts

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def asked(*given: Any, **named: Any) -> Any:
            found = getattr(self._reading, name)(*given, **named)
            self._counts.questions += 1
            self._counts.rows += len(found) if isinstance(found, list | dict) else 1
            return found

        return asked


async def cost_of_a_tick(repo: Path, home: Path, *, ended: int) -> tuple[int, int, int]:
    """Writes, questions and rows of one tick with three live instances that stay, and so many that were stopped."""
    stage = Stage(repo, home)
    store = CountingStore(stage.clock)
    stage = Stage(repo, home, store=store)
    project = await stage.engine.projects.at(str(repo))
    terms: dict[str, Any] = {"project": project.id, "workflow": "pair", "source": "pair.yaml", "agents": ("coder",)}
    live = [Instance(name=f"live-{number}", stays=True, **terms) for number in range(3)]
    over: dict[str, Any] = {"ended_at": 1.0, "ending": InstanceEnding.STOPPED, "landing": ("t9",)}
    past = [Instance(name=f"past-{number}", **over, **terms) for number in range(ended)]
    other = Task(id="t1", project=project.id, title="someone else's", agent="other", state=TaskState.WAITING)
    await MemoryStore.write(store, lambda writing: writing.record("all.put", "", *live, *past, other))

    store.writes = store.questions = store.rows = 0
    await stage.engine.workflows.tick()
    return store.writes, store.questions, store.rows


def test_an_idle_tick_writes_nothing_and_reads_nothing_of_the_past(repo: Path, tmp_path: Path) -> None:
    """Three instances stay and wait: no transaction, and twenty that have ended cost no question and no row."""

    async def story() -> None:
        alone = await cost_of_a_tick(repo, tmp_path / "alone", ended=0)
        beside = await cost_of_a_tick(repo, tmp_path / "beside", ended=20)
        assert alone == beside
        assert alone[0] == 0

    asyncio.run(story())
