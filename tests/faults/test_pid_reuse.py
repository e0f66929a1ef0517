"""The kernel gives a dead agent's pid to a stranger, really: in a pid namespace the next pid can be chosen."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from e2e_stage import WITHIN, Stage
from fault_stage import broken, over, stage
from process_table import lives

from patience import until

LAST_PID = Path("/proc/sys/kernel/ns_last_pid")
APART = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
TRIES = 100
"""How often a pid is chosen, as somebody else may be faster to take it."""


def can_choose_pids() -> bool:
    """Whether we may have a pid namespace of our own, and say there which pid is the next."""
    words = (*APART, "sh", "-c", f"echo 4000 > {LAST_PID} && [ $(sh -c 'echo $$; :') = 4001 ]")
    return bool(shutil.which("unshare")) and not subprocess.run(words, capture_output=True, check=False).returncode


@pytest.mark.skipif(not can_choose_pids(), reason="needs root, and a pid namespace in which pids can be chosen")
@pytest.mark.parametrize("story", ["dies_while_nobody_looks", "is_to_stop_while_nobody_looks"])
def test_a_stranger_with_an_agents_pid_is_left_alone(story: str) -> None:
    """Not taken for the agent, not signalled by a stop, and not adopted; the run has ended as a dead one's does."""
    here = f"import test_pid_reuse; test_pid_reuse.{story}()"
    paths = os.pathsep.join(each for each in (str(Path(__file__).parent), *sys.path) if each)
    told = subprocess.run(
        (*APART, "sh", "-c", '"$@"; exit "$?"', "sh", sys.executable, "-c", here),  # the shell buries orphans
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=6 * WITHIN,
        check=False,
    )
    assert told.returncode == 0, told.stderr


# ── in the namespace ─────────────────────────────────────────────────────────────────────────────────────────


def dies_while_nobody_looks() -> None:
    """Daemon and agent are killed; when the next daemon comes, a stranger has the agent's pid, session and group."""
    with _house() as house:
        name = house.work("Sleep", "sleep 600")
        pid = house.pid(name)
        _kill(house.daemon, pid)
        with _stranger(pid) as stranger:
            house.wl("list")
            shown = over(house, name)
            assert (shown["status"], shown["runs"][0]["outcome"]) == ("error", "crashed"), shown
            house.wl("stop", "--all")
            assert broken(house) == []
            assert lives(stranger)


def is_to_stop_while_nobody_looks() -> None:
    """The daemon is killed right after it wrote down that the agent is to stop: the next one has that left to do."""
    with _house() as house:
        name = house.work("Sleep", "trap '' TERM; while :; do sleep 1; done")
        pid = house.pid(name)
        house.begin("stop", name)
        house.event("run.stopping")
        _kill(house.daemon, pid)
        with _stranger(pid) as stranger:
            house.wl("list")
            assert over(house, name)["runs"][0]["outcome"] == "stopped"
            assert broken(house) == []
            assert lives(stranger)


def _house() -> AbstractContextManager[Stage]:
    return stage(settings="[limits]\nretries = 0\n[daemon]\nstop_grace_seconds = 30\n")


def _kill(daemon: int, leader: int) -> None:
    """Kill the daemon, then a run's whole group, and see that their pids are free."""
    os.kill(daemon, signal.SIGKILL)
    os.killpg(leader, signal.SIGKILL)
    until(lambda: not any(Path(f"/proc/{each}").exists() for each in (daemon, leader)), "their burial")


@contextmanager
def _stranger(pid: int) -> Iterator[int]:
    """A process with that very pid, which leads a session and a group of that number too."""
    for _ in range(TRIES):
        LAST_PID.write_text(str(pid - 1))
        with subprocess.Popen(("sleep", "600"), cwd="/", env={}, start_new_session=True) as process:
            try:
                if process.pid == pid:
                    yield pid
                    return
            finally:
                process.kill()
    raise AssertionError(f"somebody else had pid {pid} each time")
