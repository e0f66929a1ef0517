"""`windlass work --wait` until the change has landed, with a check that does nothing; beside the bare git commands."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from measure import Result, interleaved
from outside import outside
from whole import git, repository

FILES = 200
COMMAND = "date +%s%N > new-$$.txt && git add . && git commit -qm New"


def landed(*, quick: bool) -> Sequence[Result]:
    """The command from its start to its exit, which is 0 only if main has moved."""
    with tempfile.TemporaryDirectory(prefix="wl") as folder:
        place = Path(folder)
        mine, bare = (repository(place / name, FILES) for name in ("mine", "bare"))
        for checkout in (mine, bare):
            git(checkout, "reset", "-q", "--hard")
        git(place, "clone", "-q", "--bare", str(bare), str(place / "hub.git"))
        words = ("work", "New", "--command", COMMAND, "--wait")
        with outside(place / "home") as asked:
            asked.windlass(*words, where=mine)  # the first one makes what the others find
            ours, floor = interleaved(
                lambda: asked.windlass(*words, where=mine), lambda: _floor(place), rounds=5 if quick else 15
            )
            asked.until_quiet()
    what = "`work --wait` → landed, a check that does nothing / the bare git commands"
    return [Result(name="landed", what=what, unit="ms", ours=ours, floor=floor, goal=2.5)]


def _floor(place: Path) -> float:
    """A clone, the agent's own commands in it, the check, and its commit taken to the user's main."""
    hub, clone, user = place / "hub.git", place / "clone", place / "bare"
    began = time.perf_counter()
    git(hub, "clone", "-q", "--shared", str(hub), str(clone))
    who = "git config user.name Bench; git config user.email bench@example.com"
    subprocess.run(["sh", "-c", f"{who}; {COMMAND}"], cwd=clone, check=True)
    subprocess.run(["sh", "-c", "true"], cwd=clone, check=True)
    git(clone, "push", "-q", "origin", "HEAD:main")
    git(user, "pull", "-q", "--ff-only", str(hub), "main")
    took = (time.perf_counter() - began) * 1000
    shutil.rmtree(clone)
    return took
