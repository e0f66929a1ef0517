"""The wall clock jumps by a day while we work: what is timed is timed by another clock, and order is by number."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from e2e_stage import Stage, adds
from fault_stage import broken, give, over, stage

from patience import until

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
    landed = [event["subject"] for event in house.events() if event["kind"] == "change.landed"]
    assert landed == ["c1", "c2", "c3", "c4"]
    times = [event["time"] for event in house.events()]
    assert times != sorted(times), "the clock has not jumped"
    assert [house.agent(name)["change"]["returns"] for name in names] == [0, 0, 0, 0]
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


STUBBORN = (
    "trap 'touch \"{asked}\"' TERM; {first}; "
    "while [ ! -e '{leave}' ]; do echo here; echo here >> '{words}'; sleep 0.05; done; exit 7"
)
"""Shows that it was asked to leave, and leaves when a flag says so."""
SIGNALS = """echo '{"status": "error", "error": "No way."}' > "$WINDLASS_SIGNAL\""""
SOME = 60
"""Words, said in some three seconds: time for everyone to look at who says them."""


class Lingerer:
    """An agent that is in no hurry to leave."""

    def __init__(self, house: Stage, first: str) -> None:
        self.house = house
        self.flags = {each: house.flag(each) for each in ("asked", "leave", "words")}
        self.name = give(house, "Linger", STUBBORN.format(first=first, **self.flags))
        until(self.flags["words"].exists, "its first word")

    def lives_on(self) -> None:
        """It has said some more; if it is killed, that is seen at its end."""
        enough = self.flags["words"].stat().st_size + SOME * len("here\n")
        until(lambda: self.flags["words"].stat().st_size > enough, "more words", fails=False)

    def is_asked(self) -> None:
        """Somebody has asked it to stop."""
        self.house.begin("stop", self.name)
        until(self.flags["asked"].exists, "it to be asked")

    def ends(self) -> tuple[str, int]:
        """How, at last."""
        [run] = over(self.house, self.name)["runs"]
        return run["outcome"], run["exit_code"]

    def leaves(self) -> tuple[str, int]:
        """By itself, if it has been let live."""
        self.flags["leave"].touch()
        return self.ends()


@contextmanager
def lingerer(grace: float, first: str = "true") -> Iterator[tuple[Jumps, Lingerer]]:
    """In a house that gives it so many seconds to leave."""
    with stage(settings=f"[limits]\nretries = 0\n[daemon]\nstop_grace_seconds = {grace}\n") as house:
        jumps = Jumps(house)
        house.wl("daemon", "start")
        agent = Lingerer(house, first)
        try:
            yield jumps, agent
        finally:
            agent.flags["leave"].touch()


class TestTimeToLeave:
    def test_of_one_that_is_stopped_is_no_shorter_when_the_clock_jumps_on(self) -> None:
        """It was given an hour: a jump of a day does not kill it."""
        with lingerer(3600) as (jumps, agent):
            agent.is_asked()
            jumps.to(DAY)
            agent.lives_on()
            assert agent.leaves() == ("stopped", 7)

    def test_of_one_that_is_stopped_is_no_longer_when_the_clock_jumps_back(self) -> None:
        """It was given some seconds: it is killed after that."""
        with lingerer(4) as (jumps, agent):
            agent.is_asked()
            jumps.to(-DAY)
            assert agent.ends() == ("stopped", 137)

    def test_of_one_that_gave_its_signal_is_no_shorter_when_the_clock_jumps_on(self) -> None:
        """It may take an hour to leave by itself, and is not even asked to."""
        with lingerer(3600, SIGNALS) as (jumps, agent):
            agent.lives_on()
            jumps.to(DAY)
            agent.lives_on()
            assert not agent.flags["asked"].exists()
            assert agent.leaves() == ("failed", 7)

    def test_of_one_that_gave_its_signal_is_no_longer_when_the_clock_jumps_back(self) -> None:
        """It has some seconds by itself, and as many when asked; then it is killed."""
        with lingerer(3, SIGNALS) as (jumps, agent):
            jumps.to(-DAY)
            assert agent.ends() == ("failed", 137)
