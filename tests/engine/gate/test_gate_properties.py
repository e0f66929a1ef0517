"""Any mixture of changes, failures, deaths of the daemon and a person at main: what main is, is always proven.

Real git and real checks; only agents are missing. A day plays a sample of them.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from stage import Stage, commit, play

import sample
from windlass.core.errors import WindlassError
from windlass.core.nouns.change import LandingShape
from windlass.core.settings.schema import GateSettings

SEEDS = sample.GATE_HISTORIES.of(range(100))
STEPS = 8
CHECK = """
tree=$(git rev-parse 'HEAD^{tree}') || exit 9
echo "$tree" >> "$1/asked"
[ -z "$(ls | grep bad)" ] || exit 1
[ $(( $(wc -l < "$1/asked") % 7 )) != 3 ] || exit 3
echo "$tree" >> "$1/passed"
"""


@dataclass
class Trail:
    """Where main has been: by whom, and what was known of its trees."""

    repo: Path
    notes: Path
    tip: str = ""
    mine: set[str] = field(default_factory=set)
    """Tips that the person made."""

    def git(self, *words: str, stdin: str = "") -> str:
        ran = subprocess.run(["git", *words], cwd=self.repo, input=stdin, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.strip()

    def look(self) -> None:
        """Everything that main has become since the last look is what it may be."""
        tip = self.git("rev-parse", "main")
        if tip == self.tip:
            return
        self.git("merge-base", "--is-ancestor", self.tip, tip)  # I2
        if tip not in self.mine:
            assert self.git("rev-parse", f"{tip}^{{tree}}") in self.passed(), "I1: a tree that never passed"
        for commit_, *parents in self.line(tip):
            self.is_a_change(commit_, parents)
        self.tip = tip

    def passed(self) -> set[str]:
        file = self.notes / "passed"
        return set(file.read_text().split()) if file.exists() else set()

    def line(self, tip: str) -> Iterator[list[str]]:
        for line in self.git("rev-list", "--first-parent", "--parents", f"{self.tip}..{tip}").splitlines():
            yield line.split()

    def is_a_change(self, commit_: str, parents: list[str]) -> None:
        """I3: what a landing brought is what merging its branch brings, and nothing else."""
        if commit_ in self.mine:
            return
        words = self.git("log", "-1", "--format=%B", commit_)
        branch = words.split("Land ")[1].split(": ")[1].splitlines()[0]
        head = self.git("rev-parse", f"refs/heads/{branch}")
        merged = self.git("merge-tree", "--write-tree", parents[0], head)
        assert self.git("rev-parse", f"{commit_}^{{tree}}") == merged, f"I3: {branch}"


class Play:
    """One history, from one seed."""

    def __init__(self, seed: int, repo: Path, folder: Path) -> None:
        self.chance = random.Random(seed)
        self.notes = folder / "notes"
        self.notes.mkdir()
        (self.notes / "check.sh").write_text(CHECK)
        self.trail = Trail(repo, self.notes, tip="")
        self.trail.tip = self.trail.git("rev-parse", "main")
        self.stage = Stage(repo, folder / "home", checks=f"sh {self.notes}/check.sh {self.notes}")
        gate = GateSettings(
            runners=self.chance.choice((1, 2, 4)),
            strict=self.chance.random() < 0.2,
            retries=self.chance.choice((0, 1, 2)),
            shape=self.chance.choice((LandingShape.MERGE, LandingShape.MERGE, LandingShape.SQUASH)),
        )
        self.stage.settings.settings = replace(self.stage.settings.settings, gate=gate)
        self.count = 0

    async def go(self) -> None:
        acts = (self.bring, self.bring, self.bring, self.move_main, self.live, self.die)
        await self.bring()
        for _ in range(STEPS):
            await self.chance.choice(acts)()
            self.trail.look()
        await self.stage.restart()
        for _ in range(3):
            self.stage.clock.time += 400
            await self.stage.move()
            self.trail.look()
        queue = await self.stage.store.read(lambda store: store.changes())
        assert [each for each in queue if each.state in ("queued", "testing")] == []

    async def bring(self) -> None:
        """A branch: good, bad, or against another one."""
        self.count += 1
        branch = f"b{self.count}"
        name = self.chance.choice((f"own{self.count}", f"bad{self.count}", "shared", f"own{self.count}"))
        parent = self.trail.git("rev-parse", "main")
        text = f"{branch}\n"
        script = (
            f"commit refs/heads/{branch}\ncommitter P <p@example.com> {1000 + self.count} +0000\n"
            f"data {len(branch)}\n{branch}\nfrom {parent}\nM 644 inline {name}\ndata {len(text)}\n{text}\n"
        )
        self.trail.git("fast-import", "--quiet", stdin=script)
        await self.stage.engine.queue.add(str(self.trail.repo), branch, branch)

    async def move_main(self) -> None:
        self.count += 1
        try:
            commit(self.trail.repo, f"hand{self.count}", "by hand\n", dict(os.environ))
        except subprocess.CalledProcessError:
            return  # git was at it, and said so
        self.trail.mine.add(self.trail.git("rev-parse", "main"))

    async def live(self) -> None:
        await self.stage.move()

    async def die(self) -> None:
        """In the middle of whatever is under way."""
        for rhythm in self.stage.engine.ticks.values():
            await rhythm.tick()
        await asyncio.sleep(self.chance.random() * 0.4)
        await self.stage.restart()


@pytest.mark.parametrize("seed", SEEDS)
def test_main_is_proven_whatever_happens(seed: int, repo: Path, tmp_path: Path) -> None:
    """I1, I2 and I3 after every step; in the end nothing is left in line."""

    async def story() -> None:
        playing = Play(seed, repo, tmp_path)
        try:
            await playing.go()
        except WindlassError as error:
            raise AssertionError(f"{error} {error.hint}") from error

    play(story)
