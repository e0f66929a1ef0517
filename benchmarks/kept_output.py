"""What is stored of an agent's output once its run has ended, beside what it printed."""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from landing_many import size
from measure import Result
from outside import outside, wait_for
from whole import repository

PRINTS = """
import random, sys
words = "read wrote tests failed passed the a of agent function returns value error line".split()
source = random.Random(1)
for number in range(int(sys.argv[1])):
    print(f'{{"number": {number}, "text": "{" ".join(source.choices(words, k=12))} {source.random()}"}}')
"""
LINES, FEWER = 200_000, 20_000


def kept_output(*, quick: bool) -> Sequence[Result]:
    """The growth of the whole home, when the run is judged and the daemon rests, for each byte printed."""
    lines = FEWER if quick else LINES
    with tempfile.TemporaryDirectory(prefix="wl") as folder:
        place, source = Path(folder), repository(Path(folder) / "repo", 10)
        with outside(place / "home") as asked:
            for count in (1, lines):  # the first one makes what the second finds
                before = size(asked.home)
                words = [sys.executable, "-I", "-c", PRINTS, str(count)]
                asked.work(source, f"{shlex.join(words)} | tee {place}/printed; touch {place}/ended{count}")
                wait_for((place / f"ended{count}").exists)
                wait_for(lambda: asked.live() == 0)
                asked.until_quiet()
            grown, printed = size(asked.home) - before, (place / "printed").stat().st_size
    return [
        Result(
            name="kept-output",
            what=f"bytes stored for each of {printed / 1e6:.0f} MB that an agent printed, after its run",
            unit="MB",
            ours=grown / 1e6,
            floor=printed / 1e6,
            goal=1.0,
        )
    ]
