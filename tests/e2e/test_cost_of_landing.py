"""What one order costs, from `work` to a landed change and a tidied agent: git processes and writes."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

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

MOST_GITS, MOST_WRITES = 30, 10
SETTINGS = '[limits]\nruns = 50\n\n[checks]\ncommand = "true"\n\n[sandbox]\nmode = "off"\n'


class Costs:
    """The git processes that the daemon starts itself, and the transactions of its store."""

    def __init__(self, git_log: Path) -> None:
        self.git_log = git_log
        self.writes = 0

    def restart(self) -> None:
        self.writes = 0
        self.git_log.write_text("")

    @property
    def gits(self) -> list[str]:
        return self.git_log.read_text().splitlines()


@pytest.fixture
def costs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Costs:
    """Counters around the daemon's real git and store."""
    log, programs = tmp_path / "git.log", tmp_path / "bin"
    costs = Costs(log)
    programs.mkdir()
    (programs / "git").write_text(f'#!/bin/sh\necho "$*" >> {log}\nexec {shutil.which("git")} "$@"\n')
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")

    class CountedStore(SqliteStore):
        async def write(self, step: Callable[[Writing], T], /) -> T:
            costs.writes += 1
            return await super().write(step)

    monkeypatch.setattr(boot, "SqliteStore", CountedStore)
    return costs


def play(story: Callable[[Engine], Awaitable[None]]) -> None:
    """Play a story with the whole daemon but its surfaces."""
    home = Path(os.environ["WINDLASS_HOME"])
    prepare_home(home)
    (home / "config.toml").write_text(SETTINGS)

    async def told() -> None:
        async with boot.build(home, lambda: None) as program:
            ticks = asyncio.create_task(keep_all(program.engine))
            try:
                await story(program.engine)
            finally:
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
    return any(change.task == task.id and change.state is ChangeState.LANDED for change in store.changes(ended=True))


@pytest.fixture
def real_git(tmp_path: Path, costs: Costs) -> None:
    """For the agents, whose own git does not count."""
    (tmp_path / "real-git").symlink_to(next(line for line in _programs("git") if str(tmp_path) not in line))


def _programs(name: str) -> list[str]:
    return [path for folder in os.environ["PATH"].split(":") if (path := shutil.which(name, path=folder))]


@pytest.mark.usefixtures("real_git")
def test_an_order_is_landed_and_tidied_with_few_git_processes_and_writes(repo: Path, costs: Costs) -> None:
    """At most thirty and ten, once the first order has made what all of them use."""

    async def story(engine: Engine) -> None:
        await land(engine, repo)
        for _ in range(2):
            costs.restart()
            await land(engine, repo)
            assert len(costs.gits) <= MOST_GITS, Counter(costs.gits)
            assert costs.writes <= MOST_WRITES

    play(story)


@pytest.mark.usefixtures("real_git")
def test_the_thirtieth_landing_needs_no_more_git_processes_than_the_third(repo: Path, costs: Costs) -> None:
    """What landed before does not count."""

    async def story(engine: Engine) -> None:
        await land(engine, repo)
        await land(engine, repo)
        costs.restart()
        await land(engine, repo)
        third = len(costs.gits)
        await land(engine, repo, 26)
        costs.restart()
        await land(engine, repo)
        assert len(costs.gits) <= third, Counter(costs.gits)

    play(story)
