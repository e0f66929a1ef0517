"""Whether the 240th landing takes longer than the first ones: from an order to a tidied agent, one after the other."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from measure import Result
from whole import git, repository, whole

from windlass.core.ports.store import Reading
from windlass.engine import Engine
from windlass.engine.projects.tasks import Order

FILES = 200
LANDINGS, FEW = 240, 40
WINDOW = 10
"""Landings whose median is taken, at either end."""
COMMAND = "date +%s%N > new-$$.txt && git add . && git commit -qm new"


def landing_many(*, quick: bool) -> Sequence[Result]:
    """The last ten landings of many, beside the first ten after the very first, which makes what the others find."""
    count = FEW if quick else LANDINGS
    took, refs, grown = asyncio.run(_measure(count))
    last, first = median(took[-WINDOW:]), median(took[1 : WINDOW + 1])
    what = f"landing number {count}, from the order to a tidied agent / one of the first ten"
    return [
        Result(name="landings", what=what, unit="ms", ours=last, floor=first, goal=1.1),
        Result(name="landings refs", what="refs in files of their own at the end", unit="", ours=refs, goal=300.0),
        Result(name="landings disk", what="growth of the hub by one landing", unit="kB", ours=grown, goal=20.0),
    ]


async def _measure(count: int) -> tuple[list[float], int, float]:
    with tempfile.TemporaryDirectory(prefix="wl") as folder:
        place = Path(folder)
        checkout = repository(place / "mine", FILES)
        git(checkout, "reset", "-q", "--hard")
        async with whole(place / "home") as engine:
            took = [await _land(engine, checkout, 0)]
            hub = next((place / "home" / "hubs").iterdir())
            before = _size(hub)
            took += [await _land(engine, checkout, number) for number in range(1, count)]
            refs = sum(1 for path in (hub / "refs").rglob("*") if path.is_file())
            return took, refs, (_size(hub) - before) / 1024 / count


async def _land(engine: Engine, checkout: Path, number: int) -> float:
    """Milliseconds from an order to the retirement of its agent, with its change landed."""
    began = time.perf_counter()
    _, agent = await engine.tasks.add(
        Order(path=str(checkout), title=f"n{number}", provider="command", options={"command": COMMAND})
    )
    ear = engine.bell.ear()
    while not await engine.ports.store.read(lambda store: _is_tidied(store, agent.id)):
        ear.clear()
        await asyncio.wait_for(ear.wait(), 60)
    return (time.perf_counter() - began) * 1000


def _is_tidied(store: Reading, agent: str) -> bool:
    return not any(each.id == agent for each in store.agents())


def _size(folder: Path) -> int:
    """What a folder takes on the disk."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))
