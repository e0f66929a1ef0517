"""What the watch tick looks at: what is owed a look gets it at the next tick, and a crowd of idle runs costs little."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from stage import SetClock, Stage, play

from fakes.store import MemoryStore
from windlass.core.errors import BadInput, Unavailable
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Outcome
from windlass.core.nouns.task import TaskState
from windlass.core.ports.store import Writing
from windlass.core.runs.workdir import WorktreeState
from windlass.engine.runs.watch import LOOKS

T = TypeVar("T")

CROWD = LOOKS + 2
"""More than one tick looks at."""
GRACE = 6.0
"""Longer than a process may live on after its signal."""
FAILED = '{"status": "error", "error": "No way."}'


class FullStore(MemoryStore):
    """A store whose disk can be full."""

    full = False

    async def write(self, step: Callable[[Writing], T], /) -> T:
        if self.full:
            raise Unavailable("The disk is full.")
        return await super().write(step)


async def crowd(stage: Stage) -> list[str]:
    """Many agents at work, of whom no tick is owed anything."""
    stage.limit(runs=CROWD)
    names = [await stage.order(f"Number {each}") for each in range(CROWD)]
    await stage.move()
    return names


async def live(stage: Stage) -> int:
    return len(await stage.store.read(lambda store: store.live_runs()))


async def tick(stage: Stage) -> None:
    """The watch tick alone, once all have had the time that they may take to leave."""
    stage.clock.time += GRACE
    await stage.engine.ticks["watch"].tick()
    await stage.engine.settle()


def test_a_signal_is_seen_at_once_however_many_there_are(repo: Path, tmp_path: Path) -> None:
    """The kernel tells of the file: nobody waits for a turn, which comes the later the more agents there are."""

    async def story() -> None:
        stage = Stage(repo, tmp_path / "home")
        for name in await crowd(stage):
            await stage.signal(name, FAILED)
            stage.processes.touch(f"{await stage.worktree(name)}/.windlass/output")
        await stage.engine.settle()
        assert await live(stage) == CROWD, "they may leave by themselves"
        await tick(stage)
        assert await live(stage) == 0

    play(story)


def test_signals_that_nobody_tells_of_are_found_in_turn_and_few_at_a_time(repo: Path, tmp_path: Path) -> None:
    """A tick looks at so many and no more; after a few ticks all have been looked at."""

    async def story() -> None:
        stage = Stage(repo, tmp_path / "home")
        for name in await crowd(stage):
            await stage.signal(name, FAILED)
        counts = [CROWD]
        for _ in range(5):
            await tick(stage)
            counts.append(await live(stage))
        assert counts[-1] == 0
        assert max(before - after for before, after in itertools.pairwise(counts)) <= LOOKS

    play(story)


def test_what_could_not_be_kept_is_taken_in_by_the_next_tick(repo: Path, tmp_path: Path) -> None:
    """The process says nothing more, so that nothing stirs again: what it said is owed to the store all the same."""

    async def story() -> None:
        store = FullStore(SetClock())
        stage = Stage(repo, tmp_path / "home", store=store)
        name = await stage.order()
        await stage.move()
        run = await stage.run_of(name)
        store.full = True
        stage.processes.say(run.id, b"words")
        await asyncio.sleep(0)  # the word that it has spoken is on its way
        await stage.engine.settle()
        assert stage.engine.troubles.all()
        assert await kept(stage, run.id) == b""
        store.full = False
        await stage.engine.ticks["watch"].tick()
        await stage.engine.settle()
        assert await kept(stage, run.id) == b"words"

    play(story)


def test_who_ended_before_its_start_was_recorded_is_judged_as_soon_as_that_is_possible(
    repo: Path, tmp_path: Path
) -> None:
    """Nothing stirs any more when the first look at its tree fails: it is looked at again all the same."""

    async def story() -> None:
        stage = Stage(repo, tmp_path / "home")
        name = await stage.order()
        await stage.move()
        await stage.commit(name, "a.txt", "")
        await stage.forget_identity(await stage.run_of(name))
        await stage.engine.close()
        await stage.exit(name)
        await stage.restart()
        git = stage.engine.ports.git
        look = git.look

        async def failing(project: Project, agent: Agent, run: str) -> WorktreeState:
            del project, agent, run
            git.look = look  # type: ignore[method-assign]  # once is enough
            raise Unavailable("git is not there now.")

        git.look = failing  # type: ignore[method-assign]  # a fault that does not last
        await stage.move(troubled=True)
        assert (await stage.task_of(name)).state is TaskState.DONE

    play(story)


def test_who_spoke_and_was_lost_before_its_start_was_recorded_has_run(repo: Path, tmp_path: Path) -> None:
    """It is not started as if it never had been: what it said is kept with this run, and it goes on in another one."""

    async def story() -> None:
        stage = Stage(repo, tmp_path / "home")
        name = await stage.order()
        await stage.move()
        run = await stage.run_of(name)
        await stage.forget_identity(run)
        await stage.engine.close()
        stage.processes.say(run.id, b"words")
        stage.processes.vanish(run.id)
        stage.processes.refusal = BadInput("Nothing can be started now.")
        await stage.restart()
        await stage.move()
        first, second = await stage.store.read(lambda store: store.runs_of(name))
        assert (first.outcome, first.reason) == (Outcome.CRASHED, "it was killed, without a signal")
        assert await kept(stage, run.id) == b"words"
        assert second.outcome is Outcome.FAILED

    play(story)


def test_one_that_is_over_is_left_alone_whatever_stirs(repo: Path, tmp_path: Path) -> None:
    """A signal that it gives too late changes nothing, and nothing of what was its own is touched again."""

    async def story() -> None:
        stage = Stage(repo, tmp_path / "home")
        name = await stage.order()
        await stage.move()
        await stage.signal(name, FAILED)
        await stage.exit(name)
        await stage.move()
        before = await stage.run_of(name)
        touched: list[str] = []

        async def stop(run: str, *_: object, **__: object) -> int:
            touched.append(run)
            return 0

        stage.processes.stop = stop  # type: ignore[method-assign]  # whoever is looked after has its processes ended
        await stage.signal(name)
        stage.engine.runs.stir(before.id)
        for _ in range(100):  # turns, and not until it is settled: who is looked after for ever never is
            await asyncio.sleep(0)
        assert (await stage.run_of(name), touched) == (before, [])
        await stage.move()
        assert await stage.run_of(name) == before

    play(story)


async def kept(stage: Stage, run: str) -> bytes:
    chunks = await stage.store.read(lambda store: store.chunks(run))
    return b"".join(chunk.content for chunk in chunks)
