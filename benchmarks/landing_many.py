"""Whether the 240th landing takes longer than the first ones: from an order to a tidied agent, one after the other."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from measure import Result
from outside import Outside, outside
from whole import git, repository

FILES = 200
LANDINGS, FEW = 240, 40
WINDOW = 10
"""Landings whose median is taken, at either end."""
COMMAND = "date +%s%N > new-$$.txt && git add . && git commit -qm new"


def landing_many(*, quick: bool) -> Sequence[Result]:
    """The last ten landings of many, beside the first ten after the very first, which makes what the others find."""
    count = FEW if quick else LANDINGS
    with tempfile.TemporaryDirectory(prefix="wl") as folder:
        checkout = repository(Path(folder) / "mine", FILES)
        git(checkout, "reset", "-q", "--hard")
        with outside(Path(folder) / "home") as asked:
            _land(asked, checkout)
            hub = next((asked.home / "hubs").iterdir())
            before = size(hub)
            took = [_land(asked, checkout) for _ in range(count - 1)]
            asked.until_quiet()
            refs = sum(1 for path in (hub / "refs").rglob("*") if path.is_file())
            grown = (size(hub) - before) / 1024 / (count - 1)
    what = f"landing number {count}, from the order to a tidied agent / one of the first ten"
    first, last = median(took[:WINDOW]), median(took[-WINDOW:])
    return [
        Result(name="landings", what=what, unit="ms", ours=last, floor=first, goal=1.1),
        Result(name="landings-refs", what="refs in files of their own at the end", unit="", ours=refs, goal=300.0),
        Result(name="landings-disk", what="growth of the hub by one landing", unit="kB", ours=grown, goal=20.0),
    ]


def _land(asked: Outside, checkout: Path) -> float:
    """Milliseconds from an order to the retirement of its agent, with its change landed."""
    with asked.events() as journal:
        began = time.perf_counter()
        agent = asked.work(checkout, COMMAND)
        journal.until("change.landed")
        journal.until("agent.retired", agent)
        return (time.perf_counter() - began) * 1000


def size(folder: Path) -> int:
    """What a folder takes on the disk."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))
