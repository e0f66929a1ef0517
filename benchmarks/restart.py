"""A daemon that starts with 1,000 agents at work, beside bare Python that reads and checks the same facts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from crowd import daemon, populate, sleepers, wait_until_followed
from measure import Result, interleaved
from outside import Outside, answers, wait_for

AGENTS = 1000

FLOOR = """
import ctypes, json, os, sqlite3, sys
home, libc = sys.argv[1], ctypes.CDLL(None)
store = sqlite3.connect(f"file:{home}/windlass.db?mode=ro", uri=True)
rows = store.execute("SELECT runs.id, runs.identity, agents.name, projects.path, tasks.state FROM runs "
    "JOIN agents ON agents.id = runs.agent JOIN projects ON projects.id = agents.project "
    "JOIN tasks ON tasks.id = runs.task WHERE outcome IS NULL").fetchall()
ends = dict(store.execute('SELECT run, max("offset" + length) FROM chunks GROUP BY run'))
notify, open_files = libc.inotify_init1(0), []
for run, identity, *_ in rows:
    known = json.loads(identity)
    with open(f"/proc/{known['pid']}/stat", "rb") as file:
        assert int(file.read().rpartition(b")")[2].split()[19]) == known["started"]
    open_files.append(os.pidfd_open(known["pid"]))
    libc.inotify_add_watch(notify, f"{home}/runs/{run}".encode(), 0x182)
print(len(rows), flush=True)
"""


def restart(*, quick: bool) -> Sequence[Result]:
    """From nothing to the moment when every process is followed again; no git may run on the way."""
    agents = AGENTS // 4 if quick else AGENTS
    with tempfile.TemporaryDirectory(prefix="wl") as folder, sleepers(agents) as identities:
        home, log = Path(folder) / "home", Path(folder) / "git.log"
        populate(home, identities)
        path = _recording_git(Path(folder) / "bin", log)
        ours, floor = interleaved(lambda: _ours(home, agents, path), lambda: _floor(home, agents), rounds=5)
        listed, bare = interleaved(lambda: _listed(home), lambda: _floor(home, agents), rounds=5)
        calls = log.read_text().splitlines() if log.exists() else []
    what = f"a daemon starts and follows {agents} agents again / bare Python reads and checks the same"
    first = f"a daemon starts with {agents} agents → its first `list` / the same bare Python"
    return [
        Result(name="restart-list", what=first, unit="ms", ours=listed, floor=bare, goal=5.0),
        Result(name="restart", what=what, unit="ms", ours=ours, floor=floor, goal=5.0),
        Result(name="restart-git", what="git processes on that way", unit="", ours=len(calls), goal=0),
    ]


def _ours(home: Path, agents: int, path: str) -> float:
    began = time.perf_counter()
    with daemon(home, path=path) as process:
        wait_until_followed(process.pid, agents)
        return (time.perf_counter() - began) * 1000


def _listed(home: Path) -> float:
    began = time.perf_counter()
    with daemon(home) as process:
        wait_for(lambda: answers(Outside(home, process.pid)))
        return (time.perf_counter() - began) * 1000


def _floor(home: Path, agents: int) -> float:
    began = time.perf_counter()
    said = subprocess.run([sys.executable, "-I", "-c", FLOOR, str(home)], check=True, capture_output=True)
    took = (time.perf_counter() - began) * 1000
    if int(said.stdout) != agents:
        raise ValueError(f"The floor has seen {said.stdout!r} instead of {agents}.")
    return took


def _recording_git(folder: Path, log: Path) -> str:
    """A PATH whose git writes down that it was called."""
    folder.mkdir()
    git = folder / "git"
    git.write_text(f'#!/bin/sh\necho "$@" >>{log}\nexec {shutil.which("git")} "$@"\n')
    git.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"
