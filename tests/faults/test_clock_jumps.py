"""The wall clock jumps by a day while we work: what is timed is timed by another clock, and order is by number."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from e2e_stage import Stage, adds, until
from fault_stage import broken, give, over, stage

DAY = 86_400
CLOCK = """
import os, time

_true = time.time
_file = os.environ["WINDLASS_TEST_CLOCK"]

def _shifted():
    with open(_file) as file:
        return _true() + float(file.read())

time.time = _shifted
"""
"""Imported by every Python of the stage before anything else: the daemon is the real one, only its wall is not."""


class Jumps:
    """A stage whose wall clock a test can move."""

    def __init__(self, house: Stage) -> None:
        self.house = house
        self.file = house.flag("clock")
        (house.folder / "site").mkdir()
        (house.folder / "site" / "sitecustomize.py").write_text(CLOCK)
        house.environment["PYTHONPATH"] = f"{house.folder / 'site'}{os.pathsep}{house.environment['PYTHONPATH']}"
        house.environment["WINDLASS_TEST_CLOCK"] = str(self.file)
        self.to(0)

    def to(self, seconds: float) -> None:
        beside = self.file.with_suffix(".new")
        beside.write_text(str(seconds))
        beside.replace(self.file)


@pytest.fixture
def jumps() -> Iterator[Jumps]:
    """Checks wait for a sign, at most twenty seconds; agents may work for a minute, and have two seconds to leave."""
    limits = "[limits]\nrun_minutes = 1\nsilent_minutes = 1\n[daemon]\nstop_grace_seconds = 2\nidle_minutes = 1\n"
    with stage(settings=limits) as house:
        go = house.flag("go")
        house.wl("config", "set", "checks.command", house.waits_for(go))
        house.wl("config", "set", "checks.timeout_seconds", "20")
        house.wl("daemon", "stop")
        yield Jumps(house)


def test_changes_land_in_the_order_in_which_they_came(jumps: Jumps) -> None:
    """The second came before the clock went back a day, the third after it; and no check has timed out."""
    house, names = jumps.house, []
    for number, shift in enumerate((0, 0, -DAY, DAY), start=1):
        jumps.to(shift)
        names.append(house.work(f"Number {number}", adds(f"{number}.txt")))
        house.event("change.queued", f"c{number}")
    house.flag("go").touch()
    house.event("change.landed", "c4")
    landed = [each["subject"] for each in house.events() if each["kind"] == "change.landed"]
    assert landed == ["c1", "c2", "c3", "c4"]
    times = [each["time"] for each in house.events()]
    assert times != sorted(times), "the clock has not jumped"
    assert [house.agent(each)["change"]["returns"] for each in names] == [0, 0, 0, 0]
    assert broken(house) == []


@pytest.mark.parametrize("shift", [DAY, -DAY])
def test_an_agent_is_neither_cut_off_nor_kept(jumps: Jumps, shift: int) -> None:
    """A jump ends no run, also when the daemon starts anew after it; and a stop still ends it."""
    house = jumps.house
    lasting = house.work("Last", f"echo ready; {house.waits_for(house.flag('never'))}")
    until(lambda: house.raw("logs", lasting, "--raw"), "its first words")
    jumps.to(shift)
    os.kill(house.daemon, signal.SIGKILL)
    house.wl("list")
    over(house, give(house, "Look after everyone", "exit 0"))
    shown = house.agent(lasting)
    assert (shown["status"], len(shown["runs"]), shown["age_seconds"] >= 0) == ("running", 1, True)
    house.wl("stop", lasting)
    assert over(house, lasting)["runs"][0]["outcome"] == "stopped"
    assert broken(house) == []
