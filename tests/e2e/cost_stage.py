"""What the daemon's work costs, counted: transactions of its store, steps inside SQLite, and git processes."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

import patience
from windlass.core.nouns.change import ChangeState
from windlass.core.nouns.task import Task
from windlass.core.ports.store import Reading, Writing
from windlass.daemon import boot
from windlass.daemon.lifecycle import prepare_home
from windlass.daemon.loops import keep_all
from windlass.engine import Engine
from windlass.engine.projects.tasks import Order
from windlass.store.sqlite import SqliteStore

T = TypeVar("T")

TEST = "test"
SETTINGS = '[limits]\nruns = 50\n\n[checks]\ncommand = "true"\n\n[sandbox]\nmode = "off"\n'


class Costs:
    """The git processes that the daemon starts itself, and what its store does."""

    def __init__(self, git_log: Path) -> None:
        self.git_log = git_log
        self.restart()

    def restart(self) -> None:
        self.reads = self.writes = 0
        self.askers: Counter[str] = Counter()
        """The tick or request of each read."""
        self.statements = 0
        self.steps: dict[str, int] = {}
        """By statement: the steps that SQLite took for it at most, however often it was asked."""
        self.git_log.write_text("")

    @property
    def gits(self) -> list[str]:
        return self.git_log.read_text().splitlines()


class CountedConnection(sqlite3.Connection):
    """Counts the steps of SQLite's own machine: a row that is looked at costs some, whether or not it is wanted."""

    costs: Costs
    _statement, _steps = "", 0

    def execute(self, sql: str, *given: Any) -> sqlite3.Cursor:
        self.costs.statements += 1
        self._statement, self._steps = sql, 0
        self.set_progress_handler(self._step, 1)
        return super().execute(sql, *given)

    def _step(self) -> None:
        self._steps += 1
        self.costs.steps[self._statement] = max(self.costs.steps.get(self._statement, 0), self._steps)


@pytest.fixture
def costs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Costs:
    """Counters around the daemon's real git and store; the agents' own git does not count."""
    log, programs = tmp_path / "git.log", tmp_path / "bin"
    costs = Costs(log)
    git = str(shutil.which("git"))
    programs.mkdir()
    (tmp_path / "real-git").symlink_to(git)
    (programs / "git").write_text(f'#!/bin/sh\necho "$*" >> {log}\nexec {git} "$@"\n')
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")

    class CountedStore(SqliteStore):
        async def read(self, question: Callable[[Reading], T], /) -> T:
            if asker := _asker():
                costs.reads += 1
                costs.askers[asker] += 1
            return await super().read(question)

        async def write(self, step: Callable[[Writing], T], /) -> T:
            costs.writes += 1
            return await super().write(step)

    monkeypatch.setattr(boot, "SqliteStore", CountedStore)
    return costs


def _asker() -> str:
    """Who reads; nobody for the tests themselves, and for the ticks that look every so often, whatever happens."""
    task = asyncio.current_task()
    name = task.get_name() if task else ""
    return "" if name in (TEST, "watch", "radar") else name.split()[0]


@pytest.fixture
def steps(costs: Costs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Count what SQLite does, too."""
    kind = type("Counted", (CountedConnection,), {"costs": costs})
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=kind))


def play(story: Callable[[Engine], Awaitable[None]], *, moving: bool = True) -> None:
    """Play a story with the whole daemon but its surfaces; unless it is `moving`, also without its ticks."""
    home = Path(os.environ["WINDLASS_HOME"])
    prepare_home(home)
    (home / "config.toml").write_text(SETTINGS)

    async def told() -> None:
        if task := asyncio.current_task():
            task.set_name(TEST)
        async with boot.build(home, lambda: None) as program:
            ticks = asyncio.create_task(keep_all(program.engine)) if moving else None
            try:
                await story(program.engine)
            finally:
                if ticks:
                    ticks.cancel()

    asyncio.run(asyncio.wait_for(told(), patience.seconds(60)))


async def land(engine: Engine, repo: Path, count: int = 1) -> None:
    """Orders at the same time, each for an agent that commits a file, until all of them are tidied."""
    git = os.environ["PATH"].split(":")[0] + "/../real-git"
    command = f"echo $$ > $$.txt && {git} add . && {git} commit -qm new"
    order = Order(path=str(repo), title="Add a file", provider="command", options={"command": command})
    added = [await engine.tasks.add(order) for _ in range(count)]
    wanted = {agent.id for _, agent in added}
    ear = engine.bell.ear()
    while wanted & {agent.id for agent in await engine.ports.store.read(lambda store: store.agents())}:
        ear.clear()
        await ear.wait()
    landed = await engine.ports.store.read(lambda store: [_has_landed(store, task) for task, _ in added])
    assert all(landed), landed


def _has_landed(store: Reading, task: Task) -> bool:
    return any(change.state is ChangeState.LANDED for change in store.changes_of_task(task.id))
