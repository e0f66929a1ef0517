"""From an order to the first words of the agent, cold and warm, beside a bare shared clone of the hub and an exec."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from measure import Result
from outside import Outside, outside, wait_for
from whole import SETTINGS, git, repository

ROUNDS, FEWEST = 5, 2
PATIENCE = 60.0
"""Seconds. A slow disk takes half a minute for one bare clone of 50,000 files; then fewer rounds must do."""
COLD, WARM = {5_000: 1.1, 50_000: 0.8}, {5_000: 1 / 4, 50_000: 1 / 20}
"""The goals by the number of files. Cold: a large checkout gains from several workers. Warm: one is kept ready."""


def start_agent(*, quick: bool) -> Sequence[Result]:
    """With 5,000 and 50,000 files: each start a whole checkout, and with checkouts kept ready (`worktree.spare_mb`)."""
    sizes = (5_000,) if quick else (5_000, 50_000)
    return [result for files in sizes for result in _starts(files)]


def _starts(files: int) -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="wl") as folder:
        place = Path(folder)
        source = repository(place / "repo", files)
        cold = f"{SETTINGS}\n[worktree]\nspare_mb = 0\n"
        with outside(place / "cold", settings=cold) as each_new, outside(place / "warm") as kept_ready:
            pairs = {
                "": _rounds(each_new, source, lambda: True),
                "-warm": _rounds(kept_ready, source, lambda: _spares(kept_ready.home) > 0),
            }
    what = f"order → the agent's first words, {files} files"
    return [
        Result(
            name=f"start-{files // 1000}k{how}",
            what=f"{what}{', a checkout kept ready' if how else ''} / git clone --shared + exec",
            unit="ms",
            ours=ours,
            floor=floor,
            goal=(WARM if how else COLD)[files],
        )
        for how, (floor, ours) in pairs.items()
    ]


def _rounds(asked: Outside, source: Path, ready: Callable[[], bool]) -> tuple[float, float]:
    """Medians of the floor and of ours. The first start makes what the others find."""
    bell = asked.home.with_name(f"bell-{asked.home.name}")
    os.mkfifo(bell)
    _ours(asked, source, bell)
    hub = next((asked.home / "hubs").iterdir())
    began, pairs = time.monotonic(), list[tuple[float, float]]()
    while len(pairs) < FEWEST or (len(pairs) < ROUNDS and time.monotonic() - began < PATIENCE):
        wait_for(ready)
        asked.until_quiet()
        pairs.append((_floor(hub, asked.home.with_name("clone"), bell), _ours(asked, source, bell)))
    floor, ours = (median(each) for each in zip(*pairs, strict=True))
    return floor, ours


def _spares(home: Path) -> int:
    """Checkouts that are ready: one that is still made has a name that begins with a dot."""
    return len(list(home.glob("worktrees/*/.spares/[!.]*")))


def _ours(asked: Outside, source: Path, bell: Path) -> float:
    """The agent rings, and then stays: its end is not measured here."""
    began = time.perf_counter()
    asked.work(source, f"echo >{bell}; exec sleep 3600")
    bell.read_bytes()
    return (time.perf_counter() - began) * 1000


def _floor(hub: Path, clone: Path, bell: Path) -> float:
    began = time.perf_counter()
    git(hub, "clone", "-q", "--shared", "--branch", "main", str(hub), str(clone))
    child = os.posix_spawn("/bin/sh", ["sh", "-c", f"echo >{bell}"], os.environ)
    bell.read_bytes()
    took = (time.perf_counter() - began) * 1000
    os.waitpid(child, 0)
    shutil.rmtree(clone)
    return took
