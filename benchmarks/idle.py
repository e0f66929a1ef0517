"""What a daemon takes while its agents do nothing: with none, 50 and 500 of them, in the same minute."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from crowd import busy, daemon, populate, sleepers, wait_until_followed
from measure import Result

NONE, FEW, MANY = 0, 50, 500
SETTLING = 8.0
"""Seconds until a new daemon has looked at all that it found."""


def idle(*, quick: bool) -> Sequence[Result]:
    """Over a minute, so that every timer of the daemon has its turn."""
    seconds = 10.0 if quick else 62.0
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="wl")))
        pids = [_daemon(stack, place / str(count), count) for count in (NONE, FEW, MANY)]
        time.sleep(SETTLING)
        before = [busy(pid) for pid in pids]
        time.sleep(seconds)
        none, few, many = ((busy(pid) - was) / seconds * 100 for pid, was in zip(pids, before, strict=True))
        memory = _memory(pids[-1])
    what = "processor time of a daemon whose {} agents do nothing"
    return [
        Result(name=f"idle-{NONE}", what=what.format(NONE), unit="%", ours=none, goal=0.05),
        Result(name=f"idle-{FEW}", what=what.format(FEW), unit="%", ours=few, goal=0.1),
        Result(name=f"idle-{MANY}", what=what.format(MANY), unit="%", ours=many, goal=0.1),
        Result(name="idle-flat", what=f"the same with {MANY} / with {FEW}", unit="%", ours=many, floor=few, goal=1.5),
        Result(name="idle-memory", what=f"memory of the daemon with {MANY}", unit="MB", ours=memory, goal=75),
    ]


def _daemon(stack: ExitStack, home: Path, count: int) -> int:
    """A daemon with so many agents that sleep. Returns its pid."""
    populate(home, stack.enter_context(sleepers(count)))
    process = stack.enter_context(daemon(home))
    wait_until_followed(process.pid, count)
    return process.pid


def _memory(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
