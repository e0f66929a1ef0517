"""Fifty agents ordered at once until each has spoken, and 150 more, beside a shared clone and a spawn for each."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from measure import Result
from outside import Outside, outside, wait_for
from whole import git, repository

FILES = 200
FIRST, NEXT = 50, 150
CALLERS = 8
"""Orders that are given at the same time."""


def start_crowd(*, quick: bool) -> Sequence[Result]:
    """None of them ends meanwhile: the second lot starts beside the first, at work."""
    lots = ((FIRST // 5, 3.0), (NEXT // 5, 4.0)) if quick else ((FIRST, 3.0), (NEXT, 4.0))
    with tempfile.TemporaryDirectory(prefix="wl") as folder:
        place = Path(folder)
        source = repository(place / "repo", FILES)
        with outside(place / "home") as asked:
            _ours(asked, source, place / "first", 1)  # makes the hub, which the floor finds, too
            hub = next((asked.home / "hubs").iterdir())
            pairs = [
                (_floor(hub, place / f"clones{count}", count), _ours(asked, source, place / f"spoken{count}", count))
                for count, _ in lots
            ]
    return [
        Result(
            name=f"crowd-{which}",
            what=f"{order} {count} agents until each has spoken / git clone --shared and a spawn for each",
            unit="s",
            ours=ours,
            floor=floor,
            goal=goal,
        )
        for which, order, (count, goal), (floor, ours) in zip(
            ("first", "next"), ("the first", "the next"), lots, pairs, strict=True
        )
    ]


def _ours(asked: Outside, source: Path, spoken: Path, count: int) -> float:
    """Seconds until so many agents have written a line."""
    spoken.touch()
    began = time.perf_counter()
    with ThreadPoolExecutor(CALLERS) as callers:
        list(callers.map(lambda _: asked.work(source, f"echo >>{spoken}; exec sleep 3600"), range(count)))
    wait_for(lambda: spoken.stat().st_size >= count)
    return time.perf_counter() - began


def _floor(hub: Path, clones: Path, count: int) -> float:
    """As many at once as there are processors: more would only get in each other's way."""
    clones.mkdir()
    spoken = clones / "spoken"
    spoken.touch()
    began = time.perf_counter()
    with ThreadPoolExecutor(os.cpu_count()) as workers:
        children = list(workers.map(lambda number: _clone_and_spawn(hub, clones / str(number), spoken), range(count)))
    wait_for(lambda: spoken.stat().st_size >= count)
    took = time.perf_counter() - began
    for child in children:
        child.kill()
        child.wait()
    shutil.rmtree(clones)
    return took


def _clone_and_spawn(hub: Path, clone: Path, spoken: Path) -> subprocess.Popen[bytes]:
    git(hub, "clone", "-q", "--shared", "--branch", "main", str(hub), str(clone))
    return subprocess.Popen(["sh", "-c", f"echo >>{spoken}; exec sleep 3600"], cwd=clone)
