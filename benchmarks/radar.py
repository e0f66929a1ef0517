"""Looking at fifty agents that all edit, and merging every two that share a file; beside the bare git commands."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from statistics import median

from measure import Result
from whole import repository

from windlass.core.nouns.agent import Agent
from windlass.core.nouns.project import Project
from windlass.core.radar.collisions import Track
from windlass.engine.radar.merges import Collisions
from windlass.git import HubGit

AGENTS, FILES, SHARING = 50, 5_000, 10
"""So many agents with so many files each; the first few of them edit one file together."""


def radar(*, quick: bool) -> Sequence[Result]:
    """One pass over all of them after each has edited, and one more when nothing has changed since."""
    agents, files, rounds = (10, 1_000, 3) if quick else (AGENTS, FILES, 5)
    ours, floor, again = asyncio.run(_measure(agents, files, rounds))
    what = f"{agents} trees of {files} files looked at, and every two that share a file merged"
    return [
        Result(name="radar", what=f"{what} / the bare git commands", unit="ms", ours=ours, floor=floor, goal=3.0),
        Result(name="radar-again", what="the same pairs judged again, unchanged", unit="ms", ours=again, goal=100.0),
    ]


async def _measure(agents: int, files: int, rounds: int) -> tuple[float, float, float]:
    with tempfile.TemporaryDirectory(prefix="wl") as folder:
        place = Path(folder)
        project = Project(id="bench", name="bench", path=str(repository(place / "repo", files)), main="main")
        (place / "state").mkdir()
        port = HubGit(place / "state", environment=os.environ)
        crew = [Agent(name=f"agent-{number}", project=project.id, provider="command") for number in range(agents)]
        trees = [Path((await port.worktree(project, each))[0]) for each in crew]
        times = [await _round(port, project, crew, trees, turn) for turn in range(rounds + 1)]
    ours, floor, again = zip(*times[1:], strict=True)  # the first one reads every file
    return median(ours), median(floor), median(again)


async def _round(
    port: HubGit, project: Project, crew: Sequence[Agent], trees: Sequence[Path], turn: int
) -> tuple[float, float, float]:
    shared, floor = [], 0.0
    for number, tree in enumerate(trees):
        (tree / f"own-{number}.txt").write_text(f"{turn}\n")
        if number < SHARING:
            (tree / "d0/e0/f0.txt").write_text(f"{turn} by {number}\n")
    began = time.perf_counter()
    for number, tree in enumerate(trees):
        commit = _snapshot(tree)
        shared += [(tree, commit)] if number < SHARING else []
    for (tree, one), (lender, other) in combinations(shared, 2):
        _merge(tree, lender, one, other)
    floor = time.perf_counter() - began
    collisions, began = Collisions(port), time.perf_counter()
    tracks = [Track(agent=each.id, look=await port.quick_look(project, each)) for each in crew]
    found = await collisions.among(project, tracks)
    ours, began = time.perf_counter() - began, time.perf_counter()
    same = await collisions.among(project, tracks)
    again = time.perf_counter() - began
    pairs = SHARING * (SHARING - 1) // 2
    if len(found) != pairs or same != found:
        raise ValueError(f"{len(found)} collisions were found instead of {pairs}.")
    return ours * 1000, floor * 1000, again * 1000


def _snapshot(tree: Path) -> str:
    """The least that gives a commit of a worktree as it is: with an index of its own that is kept."""
    words = ("env", f"GIT_INDEX_FILE={tree}/.git/bench-index", "git")
    for more in (("add", "-A"), ("write-tree",)):
        said = _run(tree, *words, *more)
    return _run(tree, "git", *_WHO, "commit-tree", said, "-p", "HEAD", "-m", "Bench")


def _merge(tree: Path, lender: Path, one: str, other: str) -> None:
    lent = f"GIT_ALTERNATE_OBJECT_DIRECTORIES={lender}/.git/objects"
    _run(tree, "sh", "-c", f"{lent} git merge-tree --write-tree {one} {other} >/dev/null || test $? = 1")


def _run(tree: Path, *words: str) -> str:
    return subprocess.run(words, cwd=tree, check=True, capture_output=True, text=True).stdout.strip()


_WHO = ("-c", "user.name=Bench", "-c", "user.email=bench@example.com")
