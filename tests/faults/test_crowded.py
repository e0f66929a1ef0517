"""A run that holds as many connections as it can: it has a share of them, and the person gets through."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from functools import partial

import pytest
from e2e_stage import WITHIN, Stage, stage

from forked import WINDLASS
from patience import until

FEW = 256
"""Descriptors of the daemon, and of the run."""
SHARE = FEW // 2 // 4
"""Connections that a run may have then."""
TRIED = FEW - 20
HOLDS = r"""
import os, signal, socket, sys
doors, kept = [], 0
for _ in range(int(sys.argv[3])):
    door = socket.socket(socket.AF_UNIX)
    door.connect(sys.argv[1])
    door.sendall(b"GET /events HTTP/1.1\r\nHost: windlass\r\n\r\n")
    kept += b" 200 " in door.recv(64)
    doors.append(door)
with open(sys.argv[2] + ".part", "w") as file:
    file.write(f"{kept} {len(doors) - kept}")
os.rename(sys.argv[2] + ".part", sys.argv[2])
signal.pause()
"""
"""Opens streams as often as it is told, says how many it got and how many it was refused, and keeps them."""


@pytest.fixture
def house() -> Iterator[Stage]:
    with stage(settings="[daemon]\nstop_grace_seconds = 0.2\n", WINDLASS_SANDBOX="off") as made:
        subprocess.run(
            (*WINDLASS, "daemon", "start"),
            cwd=made.repo,
            env=made.environment,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (FEW, FEW)),
            capture_output=True,
            timeout=WITHIN,
            check=True,
        )
        yield made


def test_the_person_stops_a_run_that_holds_all_it_can(house: Stage) -> None:
    """It gets its share and no more; what it held is free when it is gone, and the next run has a share of its own."""
    script = house.flag("hold.py")
    script.write_text(HOLDS)
    for title in ("Hold on", "Hold on again"):
        held = house.flag(title)
        name = house.work(title, f"exec {sys.executable} {script} {house.state}/daemon.sock '{held}' {TRIED}")
        until(held.exists, "it to hold all it can")
        assert held.read_text() == f"{SHARE} {TRIED - SHARE}"
        assert name in house.wl("list").out
        house.wl("stop", name)
        until(partial(is_stopped, house, name), "it to be stopped")


def is_stopped(house: Stage, name: str) -> bool:
    return bool(house.agent(name)["status"] == "stopped")
