"""Taking in the output of fifty agents, beside bare loops that keep the same bytes."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import msgspec
from crowd import populate, sleepers
from measure import Result
from whole import whole

from windlass.core.ports.store import Reading
from windlass.providers import load

AGENTS = 50
WORDS = "I have read the file and see where it goes wrong: the lock is let go of before the row is written. " * 4
LINE = b'{"type":"assistant","message":{"content":[{"type":"text","text":"%s"}]}}\n' % WORDS.encode()
STEP = 1_000_000
"""Bytes of one row in a pass."""
LITTLE = 4096
"""Bytes of one row when each is committed by itself: what a program that prints lines has written meanwhile."""


def ingest(*, quick: bool) -> Sequence[Result]:
    """Megabytes in a second. The watch tick of a real engine reads, splits into lines and keeps."""
    size = 400_000 if quick else 1_500_000
    rounds = [_round(size) for _ in range(3 if quick else 5)]
    ours, passes, rows = (median(each) for each in zip(*rounds, strict=True))
    what = f"taking in {AGENTS} files of {size / 1e6:g} MB"
    return [
        Result(
            name="ingest",
            what=f"{what} / bare rows, one transaction per pass",
            unit="MB/s",
            ours=ours,
            floor=passes,
            goal=0.7,
            at_least=True,
        ),
        Result(
            name="ingest-rows",
            what=f"{what} / one commit per row of {LITTLE} bytes",
            unit="MB/s",
            ours=ours,
            floor=rows,
            goal=4.0,
            at_least=True,
        ),
    ]


def _round(size: int) -> tuple[float, float, float]:
    """Megabytes in a second: ours, a transaction per pass, a commit per row."""
    content = LINE * (size // len(LINE))
    with tempfile.TemporaryDirectory(prefix="wl") as folder, sleepers(AGENTS) as identities:
        home = Path(folder) / "home"
        populate(home, identities, provider=_structured())
        files = [home / "runs" / f"r{number}" / "output" for number in range(1, AGENTS + 1)]
        for file in files:
            file.write_bytes(content)
        total = len(content) * AGENTS / 1e6
        ours = total / asyncio.run(_ours(home, len(content)))
        passes = total / _passes(Path(folder) / "passes.db", files)
        rows = len(content) / 1e6 / _rows(Path(folder) / "rows.db", files[0])
    return ours, passes, rows


def _structured() -> str:
    """A provider whose lines are events that we read."""
    return next(each.name for each in load().all() if each.structured)


async def _ours(home: Path, size: int) -> float:
    """Seconds until the store has all of it."""
    async with whole(home, moving=False) as engine:
        began = time.perf_counter()
        while not await engine.ports.store.read(lambda store: _all_kept(store, size)):
            await engine.ticks["watch"].tick()
            await asyncio.sleep(0)
            await engine.settle()
        return time.perf_counter() - began


def _all_kept(store: Reading, size: int) -> bool:
    return all(store.output_end(f"r{number}") == size for number in range(1, AGENTS + 1))


def _passes(path: Path, files: Sequence[Path]) -> float:
    """Seconds. Every line is decoded, as a provider does that reads JSON."""
    bare, ends = _bare(path), dict.fromkeys(files, 0)
    began = time.perf_counter()
    while ends:
        bare.execute("BEGIN IMMEDIATE")
        for file in list(ends):
            chunk = _read(file, ends[file], STEP)
            if not chunk:
                del ends[file]
                continue
            _decode(chunk)
            bare.execute("INSERT INTO chunks VALUES (?, ?, ?)", (str(file), ends[file], chunk))
            ends[file] += len(chunk)
        bare.execute("COMMIT")
    took = time.perf_counter() - began
    bare.close()
    return took


def _rows(path: Path, file: Path) -> float:
    """Seconds for one of the files: all of them would take minutes."""
    bare, at = _bare(path), 0
    began = time.perf_counter()
    while chunk := _read(file, at, LITTLE):
        _decode(chunk)
        bare.execute("INSERT INTO chunks VALUES (?, ?, ?)", (str(file), at, chunk))
        at += len(chunk)
    took = time.perf_counter() - began
    bare.close()
    return took


def _bare(path: Path) -> sqlite3.Connection:
    bare = sqlite3.connect(path, isolation_level=None)
    bare.executescript(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
        'CREATE TABLE chunks (run TEXT, "offset" INTEGER, content BLOB, PRIMARY KEY (run, "offset"));'
    )
    return bare


def _read(file: Path, offset: int, limit: int) -> bytes:
    with file.open("rb") as opened:
        opened.seek(offset)
        return opened.read(limit)


def _decode(chunk: bytes) -> None:
    for line in _lines(chunk):
        msgspec.json.decode(line)


def _lines(chunk: bytes) -> Iterator[bytes]:
    """The whole ones."""
    whole_lines = chunk.split(b"\n")[1:-1]
    return (line for line in whole_lines if line)
