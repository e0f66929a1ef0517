"""The queue as people arrange it, with the real daemon."""

from __future__ import annotations

import json
import os

import pytest
from e2e_stage import Stage, adds, exact, lines

from patience import until

pytestmark = pytest.mark.xdist_group("queue")  # they share one daemon


@pytest.fixture
def house(room: Stage) -> Stage:
    """One daemon for all: what a test knows of is its own repository."""
    return room


class TestQueue:
    def test_a_persons_own_branch_goes_through_the_gate(self, house: Stage) -> None:
        """It lands without an agent, once the checks have passed on the result; a branch that is not there is named."""
        house.git("switch", "-q", "-c", "by-hand")
        house.commit({"hand.txt": "mine\n"}, "Write it by hand")
        house.git("switch", "-q", "main")
        told = house.wl("queue", "add", "by-hand")
        change = house.change(1)
        assert f"{change} wants to land by-hand: Write it by hand" in told.out
        house.event("change.landed", change)
        assert (house.repo / "hand.txt").read_text() == "mine\n"
        assert [each["passed"] for each in house.ask(f"/changes/{change}/receipt")["checks"]] == [True]
        assert "Did you mean by-hand?" in house.wl("queue", "add", "by-hnd", code=3).err
        assert "is what changes land on" in house.wl("queue", "add", "main", code=2).err
        assert "has no branch" in house.wl("queue", "add", "--", "--upload-pack=x", code=3).err

    def test_is_paused_arranged_and_resumed(self, house: Stage) -> None:
        """While it is paused nothing lands, everyone sees why, and its order can be changed."""
        paused = house.wl("queue", "pause", "--reason", "release day", "--json").value
        assert exact("project paused since reason", paused)
        for number, name in enumerate("abc", start=1):
            house.work(f"Add {name}", adds(f"{name}.txt"))
            until(lambda due=number: len(house.queue()) == due, "its change")  # type: ignore[misc]  # a lambda's default
        one, two, three = (house.change(number) for number in (1, 2, 3))
        assert "is paused (release day)" in house.wl("queue").out
        assert {each["reason"] for each in house.wl("queue", "--json").value} == {"the queue is paused: release day"}
        assert "the queue is paused" in house.wl("list").out
        house.wl("queue", "first", three)
        house.wl("queue", "hold", one, "--reason", "later")
        house.wl("queue", "drop", two)
        assert [each["id"] for each in house.wl("queue", "--json").value] == [three, one]
        assert house.git("log", "--format=%s") == "Begin"
        house.wl("queue", "resume")
        house.event("change.landed", three)
        assert "held by hand: later" in house.wl("queue").out
        house.wl("queue", "release", one)
        house.event("change.landed", one)
        assert house.git("ls-files").split() == ["README.md", "a.txt", "c.txt"]
        assert "landed" in house.wl("queue", "drop", one, code=4).err

    def test_is_watched(self, house: Stage) -> None:
        """One line for each step, from the queue as it is to the queue without what has landed."""
        house.wl("daemon", "start")
        watching = house.begin("queue", "--watch", "--json")
        assert watching.stdout is not None
        assert json.loads(watching.stdout.readline()) == []
        os.set_blocking(watching.stdout.fileno(), False)
        house.work("Add a", adds("a.txt"))
        seen = bytearray()

        def is_empty_again() -> bool:
            seen.extend(watching.stdout.read() or b"" if watching.stdout else b"")
            return b'"id":"c' in seen and seen.endswith(b"[]\n")

        until(is_empty_again, "the landing")
        assert b'"state":"queued"' in seen

    def test_only_people_arrange_it(self, house: Stage) -> None:
        """An agent is refused each verb, and may look."""
        notes = house.flag("notes")
        verbs = ("add work/x", "drop c1", "hold c1", "release c1", "retry c1", "first c1", "pause", "resume")
        tried = [f"windlass queue {verb} >> '{notes}' 2>&1; echo code=$? >> '{notes}'" for verb in verbs]
        house.land("Try it", "; ".join([*tried, lines("windlass queue", adds("a.txt"))]))
        codes = [line for line in notes.read_text().splitlines() if line.startswith("code=")]
        assert codes == ["code=5"] * len(verbs), notes.read_text()
