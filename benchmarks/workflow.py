"""A workflow of one agent, from `windlass run` to its exit, beside the same process started bare."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from measure import Result, interleaved
from whole import SETTINGS, git, repository

FILES = 20
WINDLASS = (sys.executable, "-c", "from windlass.cli.main import run; run()")
COMMITS = "date +%N%s > made.txt && git add made.txt && git commit -q -m Add"


def workflow(*, quick: bool) -> Sequence[Result]:
    """What we add to an agent that does nothing; and to one that commits a file, which lands."""
    rounds = 5 if quick else 15
    with tempfile.TemporaryDirectory(prefix="wl") as folder:
        place = Place.make(Path(folder))
        place.windlass("daemon", "start")
        try:
            return [
                _result("workflow", "", place, "true", rounds, goal=500),
                _result("workflow-lands", ", which commits a file that lands", place, COMMITS, rounds, goal=1000),
            ]
        finally:
            place.windlass("daemon", "stop")


def _result(name: str, more: str, place: Place, command: str, rounds: int, *, goal: float) -> Result:
    file = place.file(name, command)
    place.windlass("run", file)  # the first one makes what the others find
    ours, bare = interleaved(lambda: place.windlass("run", file), lambda: place.bare(command), rounds=rounds)
    what = f"run → exit, one agent{more}; beyond the {bare:.1f} ms of the same process bare ({ours / bare:.0f} times)"
    return Result(name=name, what=what, unit="ms", ours=ours - bare, goal=goal)


@dataclass(frozen=True, slots=True)
class Place:
    """A home, and two small repositories: one for Windlass, and one for what is started bare."""

    environment: dict[str, str]
    mine: Path
    other: Path

    @classmethod
    def make(cls, folder: Path) -> Place:
        home = folder / "home"
        home.mkdir(mode=0o700)
        (home / "config.toml").write_text(SETTINGS)
        mine, other = (repository(folder / each, FILES) for each in ("mine", "other"))
        for each in (mine, other):
            git(each, "reset", "-q", "--hard")
        return cls(os.environ | {"WINDLASS_HOME": str(home)}, mine, other)

    def file(self, name: str, command: str) -> str:
        """A workflow whose one agent is a command."""
        path = self.mine.parent / f"{name}.yaml"
        path.write_text(f"agents:\n  helper:\n    command: {command}\nkickoff: '@helper go'\n")
        return str(path)

    def windlass(self, *words: str) -> float:
        return _timed((*WINDLASS, *words), self.mine, self.environment)

    def bare(self, command: str) -> float:
        return _timed(("sh", "-c", command), self.other, self.environment)


def _timed(argv: Sequence[str], where: Path, environment: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run(argv, cwd=where, env=environment, check=True, capture_output=True)
    return (time.perf_counter() - began) * 1000
