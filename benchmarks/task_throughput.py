"""Claiming, finishing and unblocking tasks, beside bare SQLite that updates the same number of rows."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from functools import partial
from pathlib import Path

from measure import Result, interleaved

from windlass.core.ports import Writing
from windlass.core.task import Task, TaskState
from windlass.store.sqlite import SqliteStore

TASKS = 10_000
STEPS = 300


class Clock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


def task_throughput() -> Result:
    """With 10,000 tasks that wait; each finished one makes the next one ready."""
    with tempfile.TemporaryDirectory(prefix="wl") as folder:
        store = SqliteStore(str(Path(folder) / "windlass.db"), Clock())
        asyncio.run(_fill(store))
        bare = _bare(Path(folder) / "bare.db")
        ours, floor = interleaved(lambda: asyncio.run(_ours(store)), lambda: _floor(bare), rounds=5)
        asyncio.run(store.close())
        bare.close()
    return Result("tasks", f"claim + complete + unblock with {TASKS} tasks / bare SQLite", "ms", ours, floor, 3.3)


async def _fill(store: SqliteStore) -> None:
    def step(writing: Writing) -> None:
        for number in range(1, TASKS + 1):
            needs = (f"t{number - 1}",) if number > 1 else ()
            task = Task(id=f"t{number}", project="p", title="Do it", needs=needs)
            writing.record("task.added", task.id, task)

    await store.write(step)


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
    bare.executemany("INSERT INTO tasks VALUES (?, 'open', ?)", [(each, each - 1) for each in range(1, TASKS + 1)])
    return bare


def _floor(bare: sqlite3.Connection) -> float:
    began = time.perf_counter()
    for _ in range(STEPS):
        for before, after in (("open", "active"), ("active", "done")):
            bare.execute("BEGIN IMMEDIATE")
            (found,) = bare.execute("SELECT id FROM tasks WHERE state = ? LIMIT 1", (before,)).fetchone()
            bare.execute("UPDATE tasks SET state = ? WHERE id = ?", (after, found))
            bare.execute("INSERT INTO events (payload) VALUES (?)", ("x" * 300,))
            bare.execute("COMMIT")
    return (time.perf_counter() - began) * 1000 / STEPS
