"""The stores that the contract is held against."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from store_builders import AnyStore, CountingClock

from fakes.store import MemoryStore
from windlass.store.sqlite import SqliteStore

STORES: dict[str, Callable[[Path], AnyStore]] = {
    "memory": lambda folder: MemoryStore(CountingClock()),
    "sqlite": lambda folder: SqliteStore(str(folder / "windlass.db"), CountingClock()),
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AnyStore]:
    opened = STORES[request.param](tmp_path)
    yield opened
    asyncio.run(opened.close())
