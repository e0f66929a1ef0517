"""A store's files: filled, looked at, tampered with, and seen by somebody else."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from store_builders import CountingClock, a_task, putting

from windlass.core import codec
from windlass.core.nouns.event import digest, link
from windlass.core.ports.store import Writing
from windlass.store import journal, rows
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


def plant(folder: Path, *became: dict[str, Any]) -> None:
    """Write rows as an older version did: each with an event, in the names of its time."""
    tip = journal.Tip()
    with closing(sqlite3.connect(folder / "windlass.db")) as connection, connection:
        for seq, row in enumerate(became, start=1):
            table = rows.SHAPES[rows.KINDS[row["noun"]]].table
            known = {name: needed for _, name, _, needed, *_ in connection.execute(f"PRAGMA table_info({table})")}
            kept = {name: _column(value, needed=known[name]) for name, value in row.items() if name in known}
            marks = ", ".join(f":{name}" for name in kept)
            names = ", ".join(f'"{name}"' for name in kept)
            connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", kept)
            payload = journal.pack({}, [row])
            facts = {"seq": seq, "time": 1.0, "kind": f"{row['noun']}.made", "subject": str(row["id"])}
            chain = link(tip.chain, **facts, payload_digest=digest(payload))  # type: ignore[arg-type]  # each by its name
            last = (*facts.values(), payload.decode(), digest(payload), chain)
            connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", last)
            tip = journal.Tip(seq, chain)
        connection.execute("UPDATE tip SET seq = ?, chain = ?", (tip.seq, tip.chain))


def _column(value: Any, *, needed: bool) -> Any:
    nested = isinstance(value, list | tuple | dict) or (value is None and needed)
    return codec.encode(value).decode() if nested else value


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
