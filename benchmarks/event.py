"""From a byte in an agent's output to a subscriber that is told, after the commit; beside a bare loop that does it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from crowd import daemon, populate, sleepers, wait_until_followed
from measure import Result, percentile

WAIT = 30.0

FLOOR = """
import ctypes, os, socket, sqlite3, sys
folder, libc = sys.argv[1], ctypes.CDLL(None)
store = sqlite3.connect(folder + "/bare.db", isolation_level=None)
store.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
    "CREATE TABLE chunks (at INTEGER PRIMARY KEY, content BLOB); CREATE TABLE events (seq INTEGER PRIMARY KEY, text)")
notify = libc.inotify_init1(0)
libc.inotify_add_watch(notify, folder.encode() + b"/run", 0x2)
door = socket.socket(socket.AF_UNIX)
door.bind(folder + "/bare.sock")
door.listen()
reader, _ = door.accept()
at = 0
with open(folder + "/run/output", "rb") as file:
    while os.read(notify, 65536):
        while content := file.read(1000000):
            store.execute("BEGIN IMMEDIATE")
            store.execute("INSERT INTO chunks VALUES (?, ?)", (at, content))
            store.execute("INSERT INTO events (text) VALUES (?)", ('{"run": "r1", "offset": %d}' % at,))
            store.execute("COMMIT")
            reader.sendall(b'data: {"kind": "run.output", "offset": %d}\\n\\n' % at)
            at += len(content)
"""


def event(*, quick: bool) -> Sequence[Result]:
    """The daemon is a process of its own; the subscriber reads its event stream over the socket."""
    rounds = 80 if quick else 300
    with tempfile.TemporaryDirectory(prefix="wl") as folder, sleepers(1) as identities:
        home = Path(folder) / "home"
        populate(home, identities)
        with daemon(home) as process, _bare(Path(folder)) as (output, door):
            wait_until_followed(process.pid, 1)
            ours, bare = (
                _lines(home / "daemon.sock", "GET /events HTTP/1.1\r\nHost: windlass\r\n\r\n"),
                _lines(door, ""),
            )
            while not next(ours).startswith("id:"):
                continue
            files = (home / "runs" / "r1" / "output", output)
            pairs = [(_told(files[0], ours), _told(files[1], bare)) for _ in range(rounds)]
    mine, floor = zip(*pairs, strict=True)
    what = "a byte is written → a subscriber is told, after the commit"
    p50, p99 = percentile(mine, 0.5), percentile(mine, 0.99)
    return [
        Result(
            name="event",
            what=f"{what} / a bare loop",
            unit="ms",
            ours=p50,
            floor=percentile(floor, 0.5),
            goal=5.0,
        ),
        Result(name="event-p99", what=f"{what}, the slowest of a hundred", unit="ms", ours=p99, goal=25),
    ]


@contextmanager
def _bare(folder: Path) -> Iterator[tuple[Path, Path]]:
    """The floor's process; the file that it watches, and its socket."""
    (folder / "run").mkdir()
    output, door = folder / "run" / "output", folder / "bare.sock"
    output.touch()
    process = subprocess.Popen([sys.executable, "-I", "-c", FLOOR, str(folder)])
    try:
        while not door.exists():
            time.sleep(0.01)
        yield output, door
    finally:
        process.kill()
        process.wait()


def _lines(door: Path, hello: str) -> Iterator[str]:
    """What is said at a socket, line by line."""
    line = socket.socket(socket.AF_UNIX)
    line.settimeout(WAIT)
    while line.connect_ex(str(door)):  # it is bound before it listens
        time.sleep(0.01)
    line.sendall(hello.encode())
    with line, line.makefile("r") as said:
        yield from said


def _told(file: Path, said: Iterator[str]) -> float:
    """Milliseconds until the new byte's event is here."""
    with file.open("ab", buffering=0) as output:
        began = time.perf_counter()
        output.write(b"x\n")
    for line in said:
        if line.startswith("data:") and json.loads(line[5:]).get("kind") == "run.output":
            return (time.perf_counter() - began) * 1000
    raise ConnectionError(f"Nobody tells what is written to {file} any more.")
