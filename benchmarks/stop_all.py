"""`stop --all` with 500 agents at work in worktrees of their own, beside a bare kill of as many processes."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from crowd import populate, sleepers, wait_until_followed
from measure import Result
from outside import outside, wait_for
from whole import repository

from windlass.process.proc import is_alive

MANY, FEWER = 500, 100
FILES = 20


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
        with outside(home) as asked:
            wait_until_followed(asked.pid, count)
            before, began = asked.busy(), time.perf_counter()
            asked.windlass("stop", "--all")
            wait_for(lambda: not any(map(is_alive, identities)))
            gone = time.perf_counter() - began
            wait_for(lambda: asked.live() == 0)
            return gone, time.perf_counter() - began, asked.busy() - before


def _floor(count: int) -> float:
    with sleepers(count) as identities:
        began = time.perf_counter()
        for identity in identities:
            os.killpg(identity.pid, signal.SIGTERM)
        for identity in identities:
            with suppress(ChildProcessError):
                os.waitpid(identity.pid, 0)
        return time.perf_counter() - began
