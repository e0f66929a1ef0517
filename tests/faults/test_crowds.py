"""Many at once: agents, exits and daemons; all come to an end, and the daemon holds no more than before."""

from __future__ import annotations

import fcntl
import os

import pytest
from e2e_stage import Stage, stage, until
from fault_stage import broken, descriptors, give, over, subscriber

AGENTS = int(os.environ.get("WINDLASS_TEST_CROWD", "60"))
"""How many agents there are at once; 200 takes some forty seconds, and 500 a few minutes."""
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
        until(lambda: descriptors(house) <= before + 2, f"{descriptors(house)} descriptors to be {before} again")
        assert broken(house) == []


def _wait_for(house: Stage, kind: str, often: int) -> None:
    """Follow the journal until something has happened so often."""
    with subscriber(house, "/events?since=0") as door, door.makefile("rb") as lines:
        for line in lines:
            often -= f'"kind":"{kind}"'.encode() in line
            if not often:
                return
