"""`windlass doctor --check` on a real home: what is broken for real is named, and the exit code says so."""

from __future__ import annotations

import os
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from e2e_stage import Stage, adds, exact, lines, stage

import patience
from patience import until
from windlass.process.stamp import run_stamp
from windlass.process.starting.forker import LOCKS

pytestmark = pytest.mark.xdist_group("doctor-check")  # one worker plays the story, once

SETTINGS = "[daemon]\nstop_grace_seconds = 0.1\n[limits]\nretries = 0\n"
NAMES = [f"I{number}" for number in range(1, 16)]


@pytest.fixture(scope="module")
def home() -> Iterator[Stage]:
    """One change has landed, one agent waits for an answer, and one is at work; tests put back what they break."""
    with stage(settings=SETTINGS) as house:
        view = house.land("Add b", lines("echo one", "sleep 0.2", "echo two", adds("b.txt")))
        house.event("agent.retired", view["agent"]["name"])
        house.work("Ask", "windlass agent ask 'Which one?'")
        house.event("run.asked")
        house.work("Go on", f"echo here; {house.waits_for(house.flag('end'))}")
        house.event("run.output", "r3")
        yield house
        house.flag("end").touch()


def check(house: Stage, code: int) -> dict[str, Any]:
    """The findings by promise."""
    found = house.wl("doctor", "--check", "--json", code=code).value
    return {each["name"].split()[0]: each for each in found}


def broken(found: dict[str, Any]) -> set[str]:
    return {key for key, each in found.items() if not each["ok"]}


@contextmanager
def changed(house: Stage, statement: str, *undoing: str) -> Iterator[None]:
    """The store's file, changed behind the daemon's back, for a while."""
    _execute(house, statement)
    try:
        yield
    finally:
        for each in undoing:
            _execute(house, each)


def _execute(house: Stage, statement: str) -> None:
    with closing(sqlite3.connect(house.state / "windlass.db", timeout=patience.seconds(20))) as connection:
        assert connection.execute(statement).rowcount == 1, statement
        connection.commit()


def test_a_home_at_work_keeps_every_promise(home: Stage) -> None:
    """One line for each promise with what was looked at; exit 0; programs get stable keys."""
    told = home.wl("doctor", "--check").out.splitlines()
    assert [each.split()[:2] for each in told] == [["ok", name] for name in NAMES]
    found = check(home, 0)
    assert all(exact("name ok detail hint", each) for each in found.values())
    assert found["I1"]["detail"] == "1 landing"
    assert found["I9"]["detail"] == "1 live run"


def test_a_changed_row_is_found_in_the_file(home: Stage) -> None:
    """The tree in the receipt is another: not the tested one, not the one that git holds, not what the journal says."""
    tree = home.wl("receipt", "c1", "--json").value["tree"]
    other = "UPDATE changes SET landing = json_set(landing, '$.tree', '{}')"
    with changed(home, other.format("0" * 40), other.format(tree)):
        told = home.wl("doctor", "--check", code=1).out
    assert [line.split()[1] for line in told.splitlines() if line.startswith("bad")] == ["I1", "I3", "I12"]
    assert "windlass undo" in told


def test_a_removed_chunk_is_found(home: Stage) -> None:
    """Output that is missing in the store is named by run and bytes."""
    columns = 'run, "offset", length, at, content'
    aside = f"CREATE TABLE IF NOT EXISTS aside AS SELECT {columns} FROM chunks WHERE run = 'r1' AND \"offset\" = 0"
    with closing(sqlite3.connect(home.state / "windlass.db", timeout=patience.seconds(20))) as connection:
        connection.execute(aside)
        connection.commit()
    back = f"INSERT INTO chunks ({columns}) SELECT {columns} FROM aside"
    with changed(home, "DELETE FROM chunks WHERE run = 'r1' AND \"offset\" = 0", back):
        found = check(home, 1)
    assert broken(found) == {"I5"}
    assert found["I5"]["detail"].startswith("r1: ")


def test_a_removed_rescue_ref_is_found(home: Stage) -> None:
    """What a removal promised to bring back must be there."""
    [hub] = home.state.glob("hubs/*.git")
    ref = home.git("for-each-ref", "--format=%(refname)", "refs/windlass/rescue/*/1/tree", cwd=hub)
    commit = home.git("rev-parse", ref, cwd=hub)
    home.git("update-ref", "-d", ref, cwd=hub)
    try:
        found = check(home, 1)
    finally:
        home.git("update-ref", ref, commit, cwd=hub)
    assert broken(found) == {"I10"}
    assert ref in found["I10"]["detail"]
    assert "windlass rescue list --all" in found["I10"]["hint"]


def test_a_process_that_no_run_knows_is_found_by_its_pid(home: Stage) -> None:
    """It bears our stamp, for a run that has ended or never was."""
    with closing(sqlite3.connect(home.state / "windlass.db", timeout=patience.seconds(20))) as connection:
        [(home_id,)] = connection.execute("SELECT value FROM meta WHERE key = 'home'")
    for run in ("r1", "r99"):
        planted = subprocess.Popen(["sleep", "60"])
        resource.prlimit(planted.pid, LOCKS, (run_stamp(home_id, run),) * 2)
        try:
            found = check(home, 1)
        finally:
            planted.kill()
            planted.wait()
        assert broken(found) == {"I9"}
        assert found["I9"]["detail"] == f"pid {planted.pid} was started by a run that is over"


def test_who_only_looks_at_the_lock_is_no_rival(home: Stage) -> None:
    """As a command does that reads whose it is, or a process of ours that is about to become another program."""
    lock = home.state / "daemon.lock"
    opens = f"import time; file = open({str(lock)!r}); print('open', flush=True)"
    script = f"{opens}; time.sleep(0.7); file.close(); input()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        assert reader.stdout is not None
        reader.stdout.readline()
        found = check(home, 0)
    assert found["I8"]["ok"]


def test_another_holder_of_the_lock_and_a_lost_lock_are_found(home: Stage) -> None:
    """One daemon per home: who else has the lock's file open is named; so is a lock that no longer keeps others out."""
    lock = home.state / "daemon.lock"
    script = f"file = open({str(lock)!r}); print('open', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as rival:
        try:
            assert rival.stdout is not None
            rival.stdout.readline()
            found = check(home, 1)
        finally:
            rival.kill()
    assert broken(found) == {"I8"}
    assert f"pid {rival.pid} has the lock" in found["I8"]["detail"]
    aside = lock.rename(lock.with_name("aside"))
    try:
        lost = check(home, 1)
        lock.write_text("1\n")
        replaced = check(home, 1)
    finally:
        aside.rename(lock)
    assert "daemon.lock is gone" in lost["I8"]["detail"]
    assert "not the file that this daemon has locked" in replaced["I8"]["detail"]
    assert check(home, 0)["I8"]["ok"]


def test_a_live_run_whose_process_is_gone_is_judged_and_not_called_wrong(home: Stage) -> None:
    """Its agent was killed a moment ago: the check waits until the daemon has judged it."""
    name = home.work("Be killed", f"echo $$ > '{home.flag('pid')}'; exec sleep 60", "--sandbox", "off")
    pid = until(lambda: home.flag("pid").exists() and home.flag("pid").read_text().strip(), "the agent's pid")
    os.kill(int(pid), 9)
    assert broken(check(home, 0)) == set()
    home.event("run.crashed")
    assert home.agent(name)["status"] == "error"


def test_a_store_that_cannot_be_opened_is_the_finding() -> None:
    """There is no daemon then, and that is what is said; the file stays."""
    with stage() as house:
        store = house.state / "windlass.db"
        store.write_text("not a database")
        told = house.wl("doctor", "--check", code=1).out
        assert told.startswith("bad  daemon")
        assert Path(store).read_text() == "not a database"
