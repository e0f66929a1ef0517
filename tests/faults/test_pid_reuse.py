"""The kernel gives a dead agent's pid to a stranger, really: in a pid namespace the next pid can be chosen."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from e2e_stage import WITHIN, Stage
from fault_stage import broken, over, stage
from pid_namespace import REASON, can_choose_pids, choose_next, play_apart
from process_table import lives

from patience import until

TRIES = 100
"""How often a pid is chosen, as somebody else may be faster to take it."""


@pytest.mark.skipif(not can_choose_pids(), reason=REASON)
@pytest.mark.parametrize("story", ["dies_while_nobody_looks", "is_to_stop_while_nobody_looks"])
def test_a_stranger_with_an_agents_pid_is_left_alone(story: str) -> None:
    """Not taken for the agent, not signalled by a stop, and not adopted; the run has ended as a dead one's does."""
    play_apart(f"import test_pid_reuse; test_pid_reuse.{story}()", within=6 * WITHIN)


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
        choose_next(pid)
        with subprocess.Popen(("sleep", "600"), cwd="/", env={}, start_new_session=True) as process:
            try:
                if process.pid == pid:
                    yield pid
                    return
            finally:
                process.kill()
    raise AssertionError(f"somebody else had pid {pid} each time")
