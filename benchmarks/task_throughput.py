"""Claiming, finishing and unblocking tasks, beside bare SQLite that updates the same number of rows."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median

from measure import Result

from windlass.core.nouns.task import Task, TaskState
from windlass.core.ports.store import Writing
from windlass.daemon.clock import SystemClock
from windlass.store.sqlite import SqliteStore

FEW, MANY = 10_000, 100_000
STEPS = 200
ROUNDS = 5


def task_throughput(*, quick: bool) -> Sequence[Result]:
    """With tasks that wait for one another; each finished one makes the next one ready."""
    with tempfile.TemporaryDirectory(prefix="wl") as folder:
        sizes = (FEW,) if quick else (FEW, MANY)
        stores = [asyncio.run(_store(Path(folder) / f"{size}.db", size)) for size in sizes]
        bare = _bare(Path(folder) / "bare.db")
        rounds = [(_floor(bare), *(asyncio.run(_ours(each)) for each in stores)) for _ in range(ROUNDS)]
        for store in stores:
            asyncio.run(store.close())
        bare.close()
    floor, few, *many = (median(each) for each in zip(*rounds, strict=True))
    what = f"claim + complete + unblock with {FEW} tasks / bare SQLite"
    results = [Result(name="tasks", what=what, unit="ms", ours=few, floor=floor, goal=3.3)]
    flat = f"the same with {MANY} tasks / with {FEW}"
    return results + [Result(name="tasks-flat", what=flat, unit="ms", ours=each, floor=few, goal=1.2) for each in many]


async def _store(path: Path, tasks: int) -> SqliteStore:
    store = SqliteStore(str(path), SystemClock())

    def fill(writing: Writing) -> None:
        for number in range(1, tasks + 1):
            needs = (f"t{number - 1}",) if number > 1 else ()
            task = Task(id=f"t{number}", project="p", title="Do it", needs=needs)
            writing.record("task.added", task.id, task)

    await store.write(fill)
    return store


async def _ours(store: SqliteStore) -> float:
    """Milliseconds for one task, from ready to done, durably."""
    began = time.perf_counter()
    for _ in range(STEPS):
        claimed = await store.write(_claim)
        await store.write(partial(_complete, claimed))
    return (time.perf_counter() - began) * 1000 / STEPS


def _claim(writing: Writing) -> Task:
    active = writing.ready_tasks(limit=1)[0].move(TaskState.ACTIVE, now=1.0)
    writing.record("task.started", active.id, active)
    return active


def _complete(task: Task, writing: Writing) -> None:
    writing.record("task.done", task.id, task.move(TaskState.DONE, now=2.0))


def _bare(path: Path) -> sqlite3.Connection:
    bare = sqlite3.connect(path, isolation_level=None)
    bare.executescript(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
        "CREATE TABLE tasks (id INTEGER PRIMARY KEY, state TEXT, need INTEGER);"
        "CREATE INDEX ready ON tasks (id) WHERE state = 'open';"
        "CREATE TABLE events (seq INTEGER PRIMARY KEY, payload TEXT);"
    )
    bare.execute("BEGIN")
    bare.executemany("INSERT INTO tasks VALUES (?, 'open', ?)", [(each, each - 1) for each in range(1, FEW + 1)])
    bare.execute("COMMIT")
    return bare


def _floor(bare: sqlite3.Connection) -> float:
    began = time.perf_counter()
    for _ in range(STEPS):
        (found,) = bare.execute("SELECT id FROM tasks WHERE state = 'open' ORDER BY id LIMIT 1").fetchone()
        for state in ("active", "done"):
            bare.execute("BEGIN IMMEDIATE")
            bare.execute("UPDATE tasks SET state = ? WHERE id = ?", (state, found))
            bare.execute("INSERT INTO events (payload) VALUES (?)", ("x" * 300,))
            bare.execute("COMMIT")
    return (time.perf_counter() - began) * 1000 / STEPS
