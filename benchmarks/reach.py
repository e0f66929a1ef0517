"""From `send` on one socket to a reader that waits on another, beside a bare server: a durable commit and a push."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from measure import Result, percentile
from outside import Outside, outside, wait_for
from whole import repository

READER = """
import os, socket, sys, time
home, place, word = sys.argv[1:]
while True:
    line = socket.socket(socket.AF_UNIX)
    line.connect(home + "/daemon.sock")
    head = f"GET /messages/wait?timeout=60&since={word} HTTP/1.1\\r\\nHost: windlass\\r\\nConnection: close\\r\\n\\r\\n"
    line.sendall(head.encode())
    open(place, "a").write("waits\\n")
    answer = b""
    while part := line.recv(65536):
        answer += part
    at = time.perf_counter()
    if b'"Word' in answer:
        open(place, "a").write(f"{at}\\n")
    word = answer.rpartition(b'"since":"')[2].partition(b'"')[0].decode()
"""

BARE = """
import asyncio, sqlite3, sys
store = sqlite3.connect(sys.argv[1] + ".db", isolation_level=None)
store.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE messages (body TEXT)")
readers = []
async def serve(reader, writer):
    asked = await reader.readline()
    if asked == b"wait\\n":
        readers.append(writer)
        return
    store.execute("INSERT INTO messages VALUES (?)", (asked.decode(),))
    for each in readers:
        each.write(asked)
    writer.close()
async def main():
    async with await asyncio.start_unix_server(serve, sys.argv[1]) as server:
        await server.serve_forever()
asyncio.run(main())
"""

SETTLE = 0.02
"""Seconds between two messages, so that each finds its reader waiting."""


def reach(*, quick: bool) -> Sequence[Result]:
    """A person says something in `main`, where one agent waits; from the first byte sent to the last one read."""
    rounds = 60 if quick else 300
    with tempfile.TemporaryDirectory(prefix="wl") as folder:
        place = Path(folder)
        source = repository(place / "repo", 10)
        with outside(place / "home") as asked, _bare(place / "bare") as floor:
            send = _sender(asked, source, place / "seen")
            pairs = [(send(number), floor(number)) for number in range(rounds + 5)][5:]
    ours, bare = (list(each) for each in zip(*pairs, strict=True))
    what = "send → a waiting agent has it, socket to socket"
    return [
        Result(
            name="reach",
            what=f"{what} / a durable commit and a push",
            unit="ms",
            ours=percentile(ours, 0.5),
            floor=percentile(bare, 0.5),
            goal=10.0,
        ),
        Result(name="reach-p99", what=f"{what}, p99", unit="ms", ours=percentile(ours, 0.99), goal=10.0),
    ]


def _sender(asked: Outside, source: Path, seen: Path) -> Callable[[int], float]:
    """Says something once its agent waits, and returns how many milliseconds later the agent had it."""
    words = [sys.executable, "-I", "-c", READER, str(asked.home), str(seen), ""]
    asked.work(source, f"exec {shlex.join(words)}")

    def send(number: int) -> float:
        wait_for(lambda: seen.exists() and seen.read_text().endswith("waits\n"))
        time.sleep(SETTLE)
        lines = seen.read_text().count("\n")
        began = time.perf_counter()
        asked.ask("POST", "/messages", body=f"Word {number}", channel="main", path=str(source))
        wait_for(lambda: _heard(seen, lines) > 0)
        return (_heard(seen, lines) - began) * 1000

    return send


def _heard(seen: Path, lines: int) -> float:
    """When the reader had the message, on the clock that all processes share; 0 if it does not yet."""
    return next((float(line) for line in seen.read_text().splitlines()[lines:] if line != "waits"), 0.0)


@contextmanager
def _bare(path: Path) -> Iterator[Callable[[int], float]]:
    process = subprocess.Popen([sys.executable, "-I", "-c", BARE, str(path)])
    try:
        wait_for(path.exists)
        with _connected(path) as reader:
            reader.sendall(b"wait\n")
            yield lambda number: _push(path, reader, number)
    finally:
        process.kill()
        process.wait()


def _push(path: Path, reader: socket.socket, number: int) -> float:
    time.sleep(SETTLE)
    began = time.perf_counter()
    with _connected(path) as line:
        line.sendall(f"Word {number}\n".encode())
        reader.recv(4096)
        return (time.perf_counter() - began) * 1000


@contextmanager
def _connected(path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as line:
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            line.connect(f"/proc/self/fd/{folder}/{path.name}")  # a short way to a path of any length
        finally:
            os.close(folder)
        yield line
