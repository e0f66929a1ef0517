"""`gate.guard = "twice"`: a change to what tests changes is tested with its own copy and with main's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from e2e_stage import Stage, lines, stage

pytestmark = pytest.mark.xdist_group("twice")  # one daemon for all of it

STRICT = "check:\n\t@grep -q 42 answer.txt\n"
STRICTER = f"{STRICT}\t@test -e README.md\n"
LENIENT = "check:\n\t@true\n"
SETTINGS = '[gate]\nguard = "twice"\n[limits]\nreturns = 0\nreminders = 0\n'


@pytest.fixture(scope="module")
def house() -> Iterator[Stage]:
    with stage(checks="make check", settings=SETTINGS) as made:
        made.commit({"Makefile": STRICT, "answer.txt": "42\n"}, "Answer")
        yield made


def committed(*writes: str) -> str:
    return lines(*writes, "git add -A", "git commit -qm work")


def test_what_is_green_with_both_copies_lands(house: Stage) -> None:
    """A person need not look, and main has the change's own copy."""
    view = house.land("Check more", committed(f"printf '{STRICTER}' > Makefile"))
    assert view["change"]["state"] == "landed"
    assert house.git("show", "main:Makefile") == STRICTER.rstrip("\n")
    receipt = house.wl("receipt", view["change"]["id"], "--json").value
    assert receipt["checks"][0]["tree"] == house.git("rev-parse", "main^{tree}"), "the proof is of the tree that landed"


def test_what_only_its_own_copy_lets_pass_does_not_land(house: Stage) -> None:
    """The reason names the file whose copy of main's it failed with, and main stays."""
    before = house.git("rev-parse", "main")
    broken = committed(f"printf '{LENIENT}' > Makefile", "echo 41 > answer.txt")
    house.work("Pass for nothing", broken)
    change = house.event("change.held")["subject"]
    shown = house.wl("change", "show", change).out
    assert "exit code 2, with main's Makefile" in shown
    assert house.git("rev-parse", "main") == before


def test_what_other_machines_do_waits_for_a_person(house: Stage) -> None:
    """No test here can tell whether it is good; released, it lands."""
    since = house.events()[-1]["seq"]
    house.work("Run it there", committed("mkdir -p .github", "echo on: push > .github/x.yml"))
    change = house.event("change.held", since=since)["subject"]
    assert ".github/x.yml" in house.wl("change", "show", change).out
    house.wl("queue", "release", change)
    house.event("change.landed", change)
    assert house.git("show", "main:.github/x.yml") == "on: push"
