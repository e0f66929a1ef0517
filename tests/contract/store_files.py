"""A store's files: filled, looked at, tampered with, and seen by somebody else."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from store_builders import CountingClock, a_task, putting

from windlass.core.ports.store import Writing
from windlass.store.sqlite import SqliteStore

NOBODY = 65534
OPEN = "/tmp"
"""Where another user can follow: the suite's own folder is closed to all but its owner."""


def a_store(folder: Path, **how: Path) -> SqliteStore:
    return SqliteStore(str(folder / "windlass.db"), CountingClock(), **how)


def fill(folder: Path, *steps: Callable[[Writing], object]) -> None:
    """Make a store that holds something, and close it."""

    async def story() -> None:
        store = a_store(folder)
        for step in steps or (putting(a_task("t1"), a_task("t2"), a_task("t3")),):
            await store.write(step)
        await store.close()

    asyncio.run(story())


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def tamper(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / "windlass.db")) as connection, connection:
        for statement in statements:
            connection.execute(statement)


@contextmanager
def unprivileged(folder: Path, mode: int = 0o755) -> Iterator[None]:
    """Be a user to whom file modes mean something, beside a folder with this one."""
    folder.chmod(mode)
    if os.geteuid():
        yield
        return
    for path in (folder, *folder.iterdir()):
        os.chown(path, NOBODY, -1)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
