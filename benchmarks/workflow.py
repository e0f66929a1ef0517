"""A workflow of one agent, from `windlass run` to its exit, beside the same process started bare."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from measure import Result, interleaved
from outside import Outside, outside
from whole import git, repository

FILES = 20
COMMITS = "date +%N%s > made.txt && git add made.txt && git commit -q -m Add"


def workflow(*, quick: bool) -> Sequence[Result]:
    """What we add to an agent that does nothing; and to one that commits a file, which lands."""
    rounds = 5 if quick else 15
    with tempfile.TemporaryDirectory(prefix="wl") as folder, outside(Path(folder) / "home") as asked:
        place = Place.make(asked, Path(folder))
        return [
            _result("workflow", "", place, "true", rounds, goal=150),
            _result("workflow-lands", ", which commits a file that lands", place, COMMITS, rounds, goal=1000),
        ]


def _result(name: str, more: str, place: Place, command: str, rounds: int, *, goal: float) -> Result:
    file = place.file(name, command)
    place.windlass("run", file)  # the first one makes what the others find
    ours, bare = interleaved(lambda: place.windlass("run", file), lambda: place.bare(command), rounds=rounds)
    what = f"run → exit, one agent{more}; beyond the {bare:.1f} ms of the same process bare ({ours / bare:.0f} times)"
    return Result(name=name, what=what, unit="ms", ours=ours - bare, goal=goal)


@dataclass(frozen=True, slots=True)
class Place:
    """A daemon, and two small repositories: one for Windlass, and one for what is started bare."""

    asked: Outside
    mine: Path
    other: Path

    @classmethod
    def make(cls, asked: Outside, folder: Path) -> Place:
        mine, other = (repository(folder / each, FILES) for each in ("mine", "other"))
        for each in (mine, other):
            git(each, "reset", "-q", "--hard")
        return cls(asked, mine, other)

    def file(self, name: str, command: str) -> str:
        """A workflow whose one agent is a command."""
        path = self.mine.parent / f"{name}.yaml"
        path.write_text(f"agents:\n  helper:\n    command: {command}\nkickoff: '@helper go'\n")
        return str(path)

    def windlass(self, *words: str) -> float:
        return self.asked.windlass(*words, where=self.mine)

    def bare(self, command: str) -> float:
        began = time.perf_counter()
        subprocess.run(("sh", "-c", command), cwd=self.other, check=True, capture_output=True)
        return (time.perf_counter() - began) * 1000
