"""Giving an agent its worktree, beside a bare shared clone of the same hub."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import time
from pathlib import Path

from measure import Result, interleaved

from windlass.core.agent import Agent
from windlass.core.project import Project
from windlass.git import HubGit

FILES = 5_000


def start_agent() -> Result:
    """Cold, with 5,000 files."""
    with tempfile.TemporaryDirectory(prefix="wl") as folder:
        place = Path(folder)
        project = Project(id="p", name="p", path=str(_repository(place / "repo")), main="main")
        git = HubGit(place / "home", environment=os.environ)
        asyncio.run(git.main(project))
        hub = place / "home" / "hubs" / "p.git"
        numbers = iter(range(1000))

        def ours() -> float:
            agent = Agent(name=f"a{next(numbers)}", project="p", provider="command")
            began = time.perf_counter()
            asyncio.run(git.worktree(project, agent))
            return (time.perf_counter() - began) * 1000

        def floor() -> float:
            began = time.perf_counter()
            argv = ["git", "clone", "-q", "--shared", "--branch", "main", str(hub), str(place / f"c{next(numbers)}")]
            subprocess.run(argv, check=True, capture_output=True)
            return (time.perf_counter() - began) * 1000

        mine, bare = interleaved(ours, floor, rounds=7)
    return Result("start", f"worktree of {FILES} files / git clone --shared", "ms", mine, bare, 1.1)


def _repository(path: Path) -> Path:
    path.mkdir(parents=True)
    for number in range(FILES):
        file = path / f"d{number % 50}" / f"f{number}.txt"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{number}\n" * 20)
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], [*_WHO, "commit", "-q", "-m", "Begin"]):
        subprocess.run(["git", *command], cwd=path, check=True)
    return path


_WHO = ["-c", "user.name=Bench", "-c", "user.email=bench@example.com"]
