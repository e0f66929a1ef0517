"""What every store promises about output that is packed: it reads the same, and takes less room."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from store_builders import AnyStore, a_run, putting
from store_files import a_store
from test_store_migrations import up_to

from windlass.core.errors import Unavailable
from windlass.core.nouns.run import Chunk, Outcome
from windlass.core.runs.packed_output import pack

CHUNKS = [
    Chunk("r1", 0, 1.0, b"again and " * 500),
    Chunk("r1", 5000, 2.5, b"\x00\xff"),
    Chunk("r1", 5002, 3.0, b"a" * 90),
]
OVER = replace(a_run("r1"), outcome=Outcome.DONE, ended_at=10.0)


async def fill(store: AnyStore) -> None:
    await store.write(putting(OVER, a_run("r2", agent="other")))
    await store.write(lambda writing: [writing.append(chunk) for chunk in CHUNKS])
    await store.write(lambda writing: writing.append(Chunk("r2", 0, 1.0, b"It goes on.")))


async def pack_all(store: AnyStore, *chunks: Chunk) -> None:
    for chunk in chunks:
        form, content = pack(chunk.content)
        await store.write(
            lambda writing, chunk=chunk, form=form, content=content: writing.pack(  # type: ignore[misc]  # mypy can't infer a lambda with defaults
                chunk.run, chunk.offset, form, content
            )
        )


def test_packed_output_reads_the_same_in_less_room(store: AnyStore) -> None:
    """Bytes, times and offsets stay, also where a part of the run is packed, and no event tells of it."""

    async def story() -> None:
        await fill(store)
        events = await store.read(lambda reading: reading.events(after=0))
        said, before = await store.read(lambda reading: reading.output_size())
        for number in range(len(CHUNKS)):
            await pack_all(store, CHUNKS[number])
            assert await store.read(lambda reading: reading.chunks("r1")) == CHUNKS
            assert await store.read(lambda reading: reading.chunks("r1", offset=5001, limit=1)) == CHUNKS[1:2]
        assert await store.read(lambda reading: reading.output_end("r1")) == CHUNKS[-1].end
        assert await store.read(lambda reading: reading.last_output(["r1"])) == {"r1": 3.0}
        after = await store.read(lambda reading: reading.output_size())
        assert (said, before) == (after[0], after[0])
        assert after[1] < 200
        assert await store.read(lambda reading: reading.events(after=0)) == events
        assert await store.verify() == ""

    asyncio.run(story())


def test_only_runs_that_are_over_wait_to_be_packed(store: AnyStore) -> None:
    """A run waits from its end on, until all of it is packed; what is packed is not packed again."""

    async def waiting(before: float) -> list[str]:
        return [run.id for run in await store.read(lambda reading: reading.unpacked_runs(before=before, limit=9))]

    async def story() -> None:
        await fill(store)
        assert (await waiting(10.0), await waiting(11.0)) == ([], ["r1"])
        await pack_all(store, CHUNKS[0], CHUNKS[1])
        assert await store.read(lambda reading: reading.unpacked("r1", limit=9)) == CHUNKS[2:]
        assert await waiting(11.0) == ["r1"]
        await pack_all(store, *CHUNKS)
        assert await waiting(11.0) == []
        assert await store.read(lambda reading: reading.chunks("r1")) == CHUNKS

    asyncio.run(story())


def test_damaged_output_is_told_and_not_shown(tmp_path: Path) -> None:
    """Packed bytes that someone changed are not taken for what the agent said."""

    async def story() -> None:
        store = a_store(tmp_path)
        await fill(store)
        await pack_all(store, *CHUNKS)
        with closing(sqlite3.connect(tmp_path / "windlass.db")) as file, file:
            file.execute("UPDATE chunks SET content = substr(content, 1, 20) WHERE form = 'zlib'")
        with pytest.raises(Unavailable, match="incomplete"):
            await store.read(lambda reading: reading.chunks("r1"))
        await store.close()

    asyncio.run(story())


def test_output_of_an_older_version_can_be_packed(tmp_path: Path) -> None:
    """What an older store holds reads the same after the migration, and waits to be packed."""

    async def story() -> None:
        older = a_store(tmp_path, migrations=up_to(17, tmp_path))
        await fill(older)
        await older.close()
        store = a_store(tmp_path)
        assert await store.read(lambda reading: reading.chunks("r1")) == CHUNKS
        assert await store.read(lambda reading: reading.unpacked("r1", limit=9)) == CHUNKS
        await pack_all(store, *CHUNKS)
        assert await store.read(lambda reading: reading.chunks("r1")) == CHUNKS
        assert await store.verify() == ""
        await store.close()

    asyncio.run(story())
