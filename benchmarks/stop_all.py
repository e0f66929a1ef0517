"""`stop --all` with 500 agents at work in worktrees of their own, beside a bare kill of as many processes."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path

from crowd import busy, daemon, populate, sleepers, wait_until_followed
from measure import Result
from whole import repository

from windlass.process.proc import is_alive

MANY, FEWER = 500, 100
FILES = 20
WITHIN = 600.0
"""Seconds after which it is given up."""


def stop_all(*, quick: bool) -> Sequence[Result]:
    """From the command to the moment when every process has gone, and when every run is judged, durably."""
    count = FEWER if quick else MANY
    with tempfile.TemporaryDirectory(prefix="wl") as folder:
        floor = _floor(count)
        gone, judged, busy = _ours(Path(folder) / "home", count)
    return [
        Result(
            name="stop-all",
            what=f"`stop --all` → {count} processes have gone / killpg and wait",
            unit="s",
            ours=gone,
            floor=floor,
            goal=20.0,
        ),
        Result(name="stop-all-judged", what=f"… → {count} runs are judged", unit="s", ours=judged, goal=5.0),
        Result(name="stop-all-busy", what="processor time of the daemon for that", unit="s", ours=busy, goal=5.0),
    ]


def _ours(home: Path, count: int) -> tuple[float, float, float]:
    """Seconds until all processes have gone, until all runs are judged, and of the daemon on a processor."""
    with sleepers(count) as identities:
        populate(home, identities, repository=repository(home.with_name("repo"), FILES))
        with daemon(home) as process:
            wait_until_followed(process.pid, count)
            _windlass(home, "list", "--json")
            before, began = busy(process.pid), time.perf_counter()
            _windlass(home, "stop", "--all")
            _until(lambda: not any(map(is_alive, identities)))
            gone = time.perf_counter() - began
            _until(lambda: _live(home) == 0)
            return gone, time.perf_counter() - began, busy(process.pid) - before


def _floor(count: int) -> float:
    with sleepers(count) as identities:
        began = time.perf_counter()
        for identity in identities:
            os.killpg(identity.pid, signal.SIGTERM)
        for identity in identities:
            with suppress(ChildProcessError):
                os.waitpid(identity.pid, 0)
        return time.perf_counter() - began


def _windlass(home: Path, *words: str) -> None:
    argv = [sys.executable, "-c", "from windlass.cli.main import run; run()", *words]
    environment = os.environ | {"WINDLASS_HOME": str(home)}
    subprocess.run(argv, env=environment, check=True, capture_output=True, timeout=WITHIN)


def _until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError("Not all agents were stopped in time.")
        time.sleep(0.01)


def _live(home: Path) -> int:
    """How many runs have no outcome yet, as the store says."""
    with closing(sqlite3.connect(f"file:{home}/windlass.db?mode=ro", uri=True)) as store:
        return int(store.execute("SELECT count(*) FROM runs WHERE outcome IS NULL").fetchone()[0])
