"""A daemon asked from outside, as its users do: over its socket, by commands, and by reading its journal."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowd import busy, daemon
from whole import SETTINGS

from windlass.daemon.lifecycle import prepare_home

WINDLASS = (sys.executable, "-c", "from windlass.cli.main import run; run()")
PATIENCE = 600.0
"""Seconds after which anything is given up."""


@dataclass(frozen=True, slots=True)
class Outside:
    """A daemon of its own and its home, without a look inside."""

    home: Path
    pid: int

    def ask(self, method: str, route: str, **given: Any) -> Any:
        """One request on a connection of its own, and its answer."""
        with self.line(method, route, **given) as line:
            return answered(line)

    def line(self, method: str, route: str, **given: Any) -> socket.socket:
        """A connection on which a request was sent."""
        body = json.dumps(given).encode() if given else b""
        head = f"{method} {route} HTTP/1.1\r\nHost: windlass\r\nConnection: close\r\nContent-Length: {len(body)}\r\n"
        line = socket.socket(socket.AF_UNIX)
        line.settimeout(PATIENCE)
        try:
            line.connect(str(self.home / "daemon.sock"))
            line.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
        except OSError:
            line.close()
            raise
        return line

    def windlass(self, *words: str, where: Path | None = None, may_fail: bool = False) -> float:
        """Milliseconds of a command, from its start to its exit."""
        environment = os.environ | {"WINDLASS_HOME": str(self.home)}
        began = time.perf_counter()
        ran = subprocess.run(
            (*WINDLASS, *words), cwd=where, env=environment, check=False, capture_output=True, timeout=PATIENCE
        )
        took = (time.perf_counter() - began) * 1000
        if ran.returncode and not may_fail:
            raise ChildProcessError(f"`windlass {' '.join(words)}` failed: {ran.stderr.decode()[-500:]}")
        return took

    def work(self, repository: Path, command: str, title: str = "Work") -> str:
        """Give a shell command as an agent its work. Returns the agent's id."""
        options = {"command": command}
        given = self.ask("POST", "/tasks", title=title, path=str(repository), provider="command", options=options)
        return str(given["agent"])

    def events(self) -> Journal:
        """What happens from now on."""
        return Journal(self.line("GET", "/events"))

    def live(self) -> int:
        """How many runs have started and have no outcome yet, as the store says."""
        with closing(sqlite3.connect(f"file:{self.home}/windlass.db?mode=ro", uri=True)) as store:
            found = store.execute("SELECT count(*) FROM runs WHERE outcome IS NULL AND identity IS NOT NULL")
            return int(found.fetchone()[0])

    def busy(self) -> float:
        """Seconds that the daemon has been on a processor."""
        return busy(self.pid)

    def until_quiet(self, calm: float = 1.0) -> None:
        """Wait until the daemon does nearly nothing for a while."""
        deadline, before = time.monotonic() + PATIENCE, self.busy()
        while time.monotonic() < deadline:
            time.sleep(calm)
            now = self.busy()
            if now - before < calm * 0.02:
                return
            before = now
        raise TimeoutError("The daemon does not come to rest.")


class Journal:
    """The events of a daemon as they come, on one connection."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._lines = line.makefile("rb")
        next(text for text in self._lines if text.startswith(b"id: "))  # the number where it begins

    def until(self, kind: str, subject: str = "") -> None:
        """Read on to an event of this kind, about this subject if one is named."""
        for text in self._lines:
            if text.startswith(b"data: "):
                event = json.loads(text.removeprefix(b"data: "))
                if event["kind"] == kind and subject in {"", event["subject"]}:
                    return
        raise ConnectionError("The daemon has ended its journal.")

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.close()
        self._line.close()


@contextmanager
def outside(home: Path, *, settings: str = SETTINGS, path: str = "") -> Iterator[Outside]:
    """A daemon for a home that is there, or for a new one; what its agents started is ended with it."""
    if not (home / "config.toml").exists():
        prepare_home(home)
        (home / "config.toml").write_text(settings)
    with daemon(home, path=path) as process:
        asked = Outside(home, process.pid)
        wait_for(lambda: answers(asked))
        try:
            yield asked
        finally:
            if process.poll() is None:
                asked.windlass("stop", "--all", may_fail=True)


def answers(asked: Outside) -> bool:
    """Whether the daemon answers yet; the answer is a whole `list`."""
    try:
        asked.ask("GET", "/agents")
    except OSError:
        return False
    return True


def answered(line: socket.socket) -> Any:
    """What comes on a connection until it ends."""
    parts = []
    while part := line.recv(65536):
        parts.append(part)
    head, _, body = b"".join(parts).partition(b"\r\n\r\n")
    if not head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")):
        raise ConnectionError(f"The daemon refused: {head[:60]!r} {body[-300:]!r}")
    return json.loads(body)


def wait_for(done: Callable[[], bool], *, within: float = PATIENCE) -> None:
    """Look a hundred times a second, and give up after a while."""
    deadline = time.monotonic() + within
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError("What the benchmark waits for does not happen.")
        time.sleep(0.01)
