"""Many at once: agents, exits and daemons; all come to an end, and the daemon holds no more than before."""

from __future__ import annotations

import fcntl
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from e2e_stage import WITHIN, Stage, adds
from fault_stage import broken, descriptors, give, over, stage, subscriber
from process_table import lives

import patience
import sample
from patience import until

AGENTS = 200 if sample.long() else 20
"""How many agents live, and then leave, at once."""
DAEMONS = 50
CROWD = f"[limits]\nruns = {2 * AGENTS}\nretries = 0\n[daemon]\nstop_grace_seconds = 0.5\n"


@pytest.mark.slow
def test_a_crowd_of_agents_that_all_leave_in_the_same_second() -> None:
    """They all live at once; on a sign they exit; each is judged, and every descriptor is given back."""
    with stage(settings=CROWD) as house, house.flag("barrier").open("w") as barrier:
        fcntl.flock(barrier, fcntl.LOCK_EX)
        house.wl("daemon", "start")
        over(house, give(house, "Warm up", "exit 3"))
        before = descriptors(house)
        names = [give(house, f"Number {each}", f"flock -s '{barrier.name}' true; exit 3") for each in range(AGENTS)]
        _wait_for(house, "run.started", AGENTS + 1)
        fcntl.flock(barrier, fcntl.LOCK_UN)
        _wait_for(house, "run.crashed", AGENTS + 1)
        runs = [run for name in names for run in over(house, name)["runs"]]
        assert [(each["outcome"], each["exit_code"]) for each in runs] == [("crashed", 3)] * AGENTS
        until(lambda: descriptors(house) <= before, f"{descriptors(house)} descriptors to be {before} again")
        assert broken(house) == []


def _wait_for(house: Stage, kind: str, often: int) -> None:
    """Follow the journal until something has happened so often."""
    with subscriber(house, "/events?since=0") as door, door.makefile("rb") as lines:
        for line in lines:
            often -= f'"kind":"{kind}"'.encode() in line
            if not often:
                return


# ── daemons ──────────────────────────────────────────────────────────────────────────────────────────────────

MANY_DAEMONS = """
import os, sys
from windlass.daemon.__main__ import main

ready, go = os.pipe()
for number in range(int(sys.argv[1])):
    if not os.fork():
        os.setsid()
        os.close(go)
        said = os.open(f"{sys.argv[2]}/said.{number}", os.O_CREAT | os.O_WRONLY)
        os.dup2(said, 2)
        sys.argv[1:] = []
        os.read(ready, 1)
        code = main()
        os.write(said, f"left with {code}\\n".encode())
        os._exit(code)
"""
"""Forks, so that they are all at the lock within a moment, and not one after the other as interpreters start."""


def test_of_fifty_daemons_at_once_one_wins_and_the_others_say_so(tmp_path: Path) -> None:
    """One lock for one home: the others say that a daemon is running, leave, and touch nothing."""
    with stage() as house:
        words = (sys.executable, "-c", MANY_DAEMONS, str(DAEMONS), str(tmp_path))
        subprocess.run(words, env=house.environment, check=True, timeout=WITHIN)
        until(lambda: _endings(tmp_path).count("left with 4") == DAEMONS - 1, f"one to win: {_endings(tmp_path)}")
        until((house.state / "daemon.sock").exists, "it to listen")
        said = [path.read_text() for path in tmp_path.iterdir()]
        assert sum("already running for this home" in each for each in said) == DAEMONS - 1
        assert house.ask("/status")["pid"] == house.daemon
        house.land("Add b", adds("b.txt"))
        house.wl("daemon", "stop")
        until(lambda: _endings(tmp_path).count("left with 0") == 1, "the winner to leave")


def _endings(folder: Path) -> list[str]:
    return [path.read_text().rstrip().rpartition("\n")[2] for path in folder.iterdir()]


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """A process that has nothing to do with us, with a session of its own."""
    with subprocess.Popen(("sleep", "600"), cwd="/", start_new_session=True) as process:
        yield process
        process.kill()


def test_a_lock_that_names_a_stranger_holds_nobody(stranger: subprocess.Popen[bytes]) -> None:
    """Only the kernel's lock counts: the next daemon starts, and the stranger with that pid is left alone."""
    with stage() as house:
        (house.state / "daemon.lock").write_text(f"{stranger.pid}\n")
        assert "not running" in house.wl("daemon", "stop").out
        house.land("Add b", adds("b.txt"))
        assert house.daemon != stranger.pid
        assert lives(stranger.pid)


def test_a_stranger_with_a_runs_pid_is_neither_adopted_nor_signalled(stranger: subprocess.Popen[bytes]) -> None:
    """Daemon and agent have gone, and the agent's pid was given to someone else: the run has crashed, they live on."""
    with stage(settings="[limits]\nretries = 0\n[daemon]\nstop_grace_seconds = 0.2\n") as house:
        name = house.work("Sleep", "sleep 600")
        pid = house.pid(name)
        os.kill(house.daemon, signal.SIGKILL)
        os.killpg(pid, signal.SIGKILL)
        until(lambda: not lives(pid), "the agent to go")
        with closing(sqlite3.connect(house.state / "windlass.db", timeout=patience.seconds(20))) as store:
            moved = "UPDATE runs SET identity = json_set(identity, '$.pid', ?) WHERE id = 'r1'"
            assert store.execute(moved, (stranger.pid,)).rowcount == 1
            store.commit()
        house.wl("list")
        shown = over(house, name)
        assert (shown["status"], shown["runs"][0]["outcome"]) == ("error", "crashed")
        house.wl("stop", "--all")
        assert lives(stranger.pid)
