"""What becomes of the output of a run that is over: kept once, in little room, and always readable."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from stage import SetClock, Stage, play

from fakes.store import MemoryStore
from windlass.core.errors import Unavailable
from windlass.core.nouns.run import Chunk, Run
from windlass.core.ports.store import Writing
from windlass.engine.runs.packing import SETTLED_SECONDS

T = TypeVar("T")

SAID = [b"The same words again. " * 40, b"\x00\xff half a l", b"ine\n" * 50]


class Dying(MemoryStore):
    """A store that takes only so many more steps."""

    left = 10**9

    async def write(self, step: Callable[[Writing], T], /) -> T:
        if not self.left:
            raise Unavailable("The disk is full.")
        self.left -= 1
        return await super().write(step)


async def over(stage: Stage) -> tuple[Run, list[Chunk]]:
    """A run that has said something and ended."""
    name = await stage.order()
    await stage.move()
    run = await stage.run_of(name)
    for words in SAID:
        stage.processes.say(run.id, words)
        await stage.move()
    await stage.exit(name, 1)
    await stage.move()
    return await latest(stage, run), await chunks(stage, run)


async def latest(stage: Stage, run: Run) -> Run:
    found = await stage.store.read(lambda store: store.find(Run, run.id))
    assert found is not None and not found.live
    return found


async def chunks(stage: Stage, run: Run) -> list[Chunk]:
    return await stage.store.read(lambda store: store.chunks(run.id))


async def in_file(stage: Stage, run: Run) -> bytes:
    return await stage.processes.output(run.id, 0, 10_000)


async def pack(stage: Stage) -> None:
    await stage.engine.ticks["pack"].tick()


async def audit(stage: Stage) -> list[str]:
    return [found.detail async for found in stage.engine.audit.findings(list) if "I5" in found.name and not found.ok]


def test_the_output_of_a_run_that_is_long_over_is_kept_once(repo: Path, tmp_path: Path) -> None:
    """At first its file stays; then the store alone has it, smaller, with the same bytes and times."""

    async def story() -> None:
        stage = Stage(repo, tmp_path / "home")
        run, before = await over(stage)
        assert [chunk.content for chunk in before] == SAID
        await pack(stage)
        assert await in_file(stage, run) == b"".join(SAID)

        stage.clock.time += SETTLED_SECONDS + 1
        await pack(stage)

        assert await in_file(stage, run) == b""
        assert await chunks(stage, run) == before
        said, kept = await stage.store.read(lambda store: store.output_size())
        assert kept < said / 2
        assert await audit(stage) == []

    play(story)


@pytest.mark.parametrize("steps", range(len(SAID)))
def test_packing_goes_on_where_it_was_broken_off(repo: Path, tmp_path: Path, steps: int) -> None:
    """After each step the output reads the same, and the next tick does the rest."""

    async def story() -> None:
        store = Dying(SetClock())
        stage = Stage(repo, tmp_path / "home", store=store)
        run, before = await over(stage)
        stage.clock.time += SETTLED_SECONDS + 1
        store.left = steps
        await pack(stage)
        assert await chunks(stage, run) == before
        assert len(await stage.store.read(lambda store: store.unpacked(run.id, limit=9))) == len(SAID) - steps

        store.left = 10**9
        await pack(stage)

        assert await stage.store.read(lambda store: store.unpacked(run.id, limit=9)) == []
        assert await chunks(stage, run) == before
        assert await in_file(stage, run) == b""

    play(story)


@pytest.mark.parametrize("strange", ["more", "other", "shared"])
def test_a_file_that_is_not_what_the_store_has_stays(repo: Path, tmp_path: Path, strange: str) -> None:
    """Bytes that the store does not have, or that may be someone else's, are never removed."""

    async def story() -> None:
        stage = Stage(repo, tmp_path / "home")
        run, before = await over(stage)
        process = stage.processes.started[run.id]
        process.output += b"late" if strange == "more" else b""
        process.output[:1] = b"X" if strange == "other" else process.output[:1]
        process.shared = strange == "shared"
        there = bytes(process.output)
        stage.clock.time += SETTLED_SECONDS + 1

        await pack(stage)

        assert await in_file(stage, run) == there
        assert await chunks(stage, run) == before
        assert await stage.store.read(lambda store: store.unpacked(run.id, limit=9)) == []

    play(story)
