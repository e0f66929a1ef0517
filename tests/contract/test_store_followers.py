"""Who follows a store, on disk and in memory."""

from __future__ import annotations

import asyncio

import pytest
from store_builders import AnyStore, a_task, putting

from windlass.core.errors import Conflict
from windlass.core.ports.store import Writing


def test_whoever_follows_is_told_what_was_kept(store: AnyStore) -> None:
    """Of each transaction its events, before its caller goes on; of one that failed, nothing."""
    told: list[list[int]] = []

    def fail(writing: Writing) -> None:
        putting(a_task("t9"))(writing)
        raise Conflict("no")

    async def story() -> None:
        store.follow(lambda events: told.append([event.seq for event in events]))
        await store.write(putting(a_task("t1")))
        assert told == [[1]]
        with pytest.raises(Conflict):
            await store.write(fail)
        await store.write(lambda writing: writing.last_seq())
        assert told == [[1]]

    asyncio.run(story())
