"""What the gate itself takes for one change, with checks that do nothing; beside the bare git commands."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from measure import Result
from whole import git, repository, whole

from windlass.core.nouns.change import Change, ChangeState
from windlass.core.nouns.project import Project
from windlass.core.ports.store import Writing
from windlass.engine import Engine

FILES = 200
CHANGES = 5
"""Of one round."""


def landing(*, quick: bool) -> Sequence[Result]:
    """From the queue to a main that has moved in the user's checkout, for each change."""
    ours, floor = asyncio.run(_measure(3 if quick else 5))
    what = "one change from the queue to main, checks that do nothing / the bare git commands"
    return [Result(name="landing", what=what, unit="ms", ours=ours, floor=floor, goal=5.0)]


async def _measure(rounds: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory(prefix="wl") as folder:
        place = Path(folder)
        mine, bare = (_checkout(place / name) for name in ("mine", "bare"))
        git(place, "clone", "-q", "--bare", str(bare), str(place / "hub.git"))
        git(place, "clone", "-q", "--shared", str(place / "hub.git"), str(place / "tree"))
        async with whole(place / "home", moving=False) as engine:
            project = await engine.projects.at(str(mine))
            await engine.ports.git.main(project)
            pairs = [
                (await _ours(engine, project, place, at), await asyncio.to_thread(_floor, place, at))
                for at in range(rounds + 1)
            ]
    ours, floor = zip(*pairs[1:], strict=True)  # the first one makes what the others find
    return median(ours), median(floor)


def _checkout(path: Path) -> Path:
    git(repository(path, FILES), "reset", "-q", "--hard")
    return path


async def _ours(engine: Engine, project: Project, place: Path, turn: int) -> float:
    hub = next((place / "home" / "hubs").iterdir())
    heads = [_branch(hub, project.main, f"{turn}-{number}") for number in range(CHANGES)]

    def queue(store: Writing) -> list[str]:
        made = [
            Change(id=store.next_id(Change), project=project.id, branch="b", head=head, title="T") for head in heads
        ]
        for each in made:
            store.record("change.queued", each.id, replace(each, branch=f"work/{each.id}"))
        return [each.id for each in made]

    ids = await engine.ports.store.write(queue)
    began = time.perf_counter()
    await engine.ticks["land"].tick()
    await engine.settle()
    took = (time.perf_counter() - began) * 1000 / CHANGES
    ended = await engine.ports.store.read(lambda store: [store.find(Change, key) for key in ids])
    if any(each is None or each.state is not ChangeState.LANDED for each in ended):
        raise ValueError(f"Not all changes have landed: {ended}")
    return took


def _floor(place: Path, turn: int) -> float:
    """Merge without a checkout, test the tree in one, take the commit to the user's main."""
    hub, tree, user = place / "hub.git", place / "tree", place / "bare"
    heads = [_branch(hub, "main", f"{turn}-{number}") for number in range(CHANGES)]
    began = time.perf_counter()
    for head in heads:
        merged = git(hub, "merge-tree", "--write-tree", "main", head)
        commit = git(hub, *_WHO, "commit-tree", merged, "-p", "main", "-p", head, "-m", "Land")
        git(tree, "checkout", "-q", "--detach", commit)
        subprocess.run(["/bin/sh", "-c", "true"], cwd=tree, check=True)
        git(hub, "push", "-q", str(user), f"{commit}:refs/landing/now")
        git(user, "merge", "-q", "--ff-only", commit)
        git(hub, "update-ref", "refs/heads/main", commit)
    return (time.perf_counter() - began) * 1000 / CHANGES


def _branch(hub: Path, main: str, name: str) -> str:
    """A commit on main with one new file, in the hub."""
    blob = git(hub, "hash-object", "-w", "--stdin", stdin=name.encode())
    entries = f"{git(hub, 'ls-tree', main)}\n100644 blob {blob}\tnew-{name}.txt\n"
    tree = git(hub, "mktree", stdin=entries.encode())
    commit = git(hub, *_WHO, "commit-tree", tree, "-p", main, "-m", name)
    git(hub, "update-ref", f"refs/heads/work/{name}", commit)
    return commit


_WHO = ("-c", "user.name=Bench", "-c", "user.email=bench@example.com")
