"""Stopping one agent, and stopping everyone: both end the same things."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
from stage import SetClock, Stage, play

from fakes.store import MemoryStore
from windlass.core.nouns.change import Candidate, ChangeState
from windlass.core.nouns.run import Outcome
from windlass.core.nouns.task import TaskState
from windlass.core.ports.store import Reading, Writing
from windlass.engine.projects.tasks import Order

T = TypeVar("T")


class CountedStore(MemoryStore):
    """A store that counts what it is asked."""

    reads = writes = 0

    async def read(self, question: Callable[[Reading], T], /) -> T:
        self.reads += 1
        return await super().read(question)

    async def write(self, step: Callable[[Writing], T], /) -> T:
        self.writes += 1
        return await super().write(step)


@pytest.mark.parametrize("everyone", [False, True], ids=["one", "everyone"])
def test_what_a_stopped_agent_wanted_to_land_is_closed(repo: Path, tmp_path: Path, everyone: bool) -> None:
    """An agent whose change waits in the queue has nothing else to stop."""
    stage = Stage(repo, tmp_path / "home")

    async def story() -> None:
        name = await stage.order()
        await stage.move()
        await stage.engine.queue.pause(str(repo), "")
        await stage.finish(name, "a.txt", "a\n")
        await stage.move()
        assert (await stage.change_of(name)).queued

        if everyone:
            assert (await stage.engine.stopping.everyone()).agents == (name,)
        else:
            assert await stage.engine.stopping.agent(name)
        await stage.engine.queue.resume(str(repo))
        await stage.move()

        assert (await stage.change_of(name)).state is ChangeState.CLOSED
        assert (await stage.task_of(name)).state is TaskState.CANCELLED

    play(story)


def test_one_whose_change_has_landed_meanwhile_keeps_nobody_else_at_work(
    repo: Path, tmp_path: Path, git: Callable[..., str]
) -> None:
    """It is too late to stop the first, which is no reason to leave the second."""
    stage = Stage(repo, tmp_path / "home")

    async def story() -> None:
        first, second = [await stage.order(), await stage.order()]
        await stage.move()
        await stage.engine.queue.pause(str(repo), "")
        for name in (first, second):
            await stage.finish(name, f"{name}.txt", "a\n")
        await stage.move()
        change, tip = await stage.change_of(first), git("rev-parse", "main", cwd=repo)
        landed = replace(change, candidate=Candidate(commit=tip, tree="", before="", commits=(), files=()))
        await stage.store.write(lambda store: store.record("change.staged", change.id, landed))

        assert (await stage.engine.stopping.everyone()).agents == (second,)
        assert (await stage.change_of(second)).state is ChangeState.CLOSED

    play(story)


def test_a_persons_own_change_goes_on_and_is_named(repo: Path, tmp_path: Path, git: Callable[..., str]) -> None:
    """Nobody was stopped who wanted it; those who run are stopped, and their work is not named."""
    stage = Stage(repo, tmp_path / "home")
    git("branch", "mine", cwd=repo)

    async def story() -> None:
        name = await stage.order()
        await stage.move()
        await stage.engine.queue.pause(str(repo), "")
        mine = await stage.engine.queue.add(str(repo), "mine", "My own")

        stopped = await stage.engine.stopping.everyone()

        assert stopped.agents == (name,)
        assert [change.id for change in stopped.going_on] == [mine.id]

    play(story)


def test_those_of_another_project_go_on_and_are_named(repo: Path, tmp_path: Path, git: Callable[..., str]) -> None:
    """Who stands in one project and stops all of them means those of that project."""
    stage, other = Stage(repo, tmp_path / "home"), tmp_path / "other"
    git("clone", "-q", str(repo), str(other), cwd=tmp_path)

    async def story() -> None:
        name = await stage.order()
        order = Order(path=str(other), title="Elsewhere", provider="command", options={"command": "claude-like"})
        _, away = await stage.engine.tasks.add(order)
        await stage.move()
        [here] = [each for each in await stage.store.read(lambda store: store.projects()) if each.path == str(repo)]

        stopped = await stage.engine.stopping.everyone(here.id)
        await stage.move()

        assert (stopped.agents, stopped.elsewhere) == ((name,), (away.id,))
        assert (await stage.run_of(away.id)).live

    play(story)


@pytest.mark.parametrize("many", [2, 5])
def test_everyone_at_work_is_asked_in_one_transaction(repo: Path, tmp_path: Path, many: int) -> None:
    """Whom it is that runs is read once, and what is written of it is one commit, however many they are."""
    store = CountedStore(SetClock())
    stage = Stage(repo, tmp_path / "home", store=store)

    async def story() -> None:
        names = [await stage.order() for _ in range(many)]
        await stage.move()

        runs, stirred = stage.engine.runs, list[str]()
        stir, runs.stir = runs.stir, stirred.append  # what follows in the background is not counted
        store.reads = store.writes = 0
        stopped = await stage.engine.stopping.everyone()
        assert (store.reads, store.writes) == (4, 1)
        assert stopped.agents == tuple(names)

        for run in stirred:
            stir(run)
        await stage.move()
        assert {(await stage.run_of(name)).outcome for name in names} == {Outcome.STOPPED}

    play(story)
