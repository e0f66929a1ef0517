"""Those who watch: slow, gone or a hundred of them; each has its own pace, and none costs the others anything."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from e2e_stage import WITHIN, Stage
from fault_stage import MEGABYTE, descriptors, give, most_memory, over, stage, subscriber

from patience import until

pytestmark = pytest.mark.xdist_group("subscribers")  # one worker plays the story, once

WORDY = """{ printf '{"status": "error", "error": "'; head -c 900000 /dev/zero | tr '\\0' 'e'; echo '"}'; }"""
LOUD = "head -c 30000000 /dev/zero | tr '\\0' 'l'"


@pytest.fixture(scope="module")
def loud() -> Iterator[Stage]:
    """A journal of some 30 MB, and an agent that has printed 30 MB."""
    with stage(settings="[limits]\nretries = 0\n") as house:
        house.wl("daemon", "start")
        names = [give(house, f"Wordy {each}", f'{WORDY} > "$WINDLASS_SIGNAL"') for each in range(10)]
        names.append(give(house, "Loud", f"{LOUD}; exit 3"))
        for name in names:
            over(house, name)
        house.flag("loud").write_text(names[-1])
        yield house


def _read_some(door: socket.socket) -> bytes:
    """What there is to begin with: then the answer has begun."""
    return door.recv(1000)


@pytest.mark.parametrize("what", ["events", "logs"])
def test_those_who_never_read_cost_no_memory(loud: Stage, what: str) -> None:
    """Thirty who ask for everything and read nothing: a bounded piece waits for each, and others get all at once."""
    name = loud.flag("loud").read_text()
    path = "/events?since=0" if what == "events" else f"/agents/{name}/logs?follow=1"
    _reset_most(loud)
    before = most_memory(loud)
    with ExitStack() as stack:
        for _ in range(30):
            _read_some(stack.enter_context(subscriber(loud, path)))
        last = over(loud, give(loud, "Meanwhile", "exit 3"))["runs"][0]["id"]
        loud.event("run.crashed", last)
        assert most_memory(loud) - before < 150 * MEGABYTE


def _reset_most(house: Stage) -> None:
    """Let the kernel count the most memory anew."""
    Path(f"/proc/{house.daemon}/clear_refs").write_text("5")


def test_one_who_vanishes_leaves_nothing(loud: Stage) -> None:
    """Whether in the middle of an event or while nothing happens: its connection is given back."""
    before = descriptors(loud, "socket:")
    for path in ("/events?since=0", "/events", "/agents/" + loud.flag("loud").read_text() + "/logs") * 10:
        with subscriber(loud, path) as door:
            _read_some(door)
    until(lambda: descriptors(loud, "socket:") <= before, "their connections to be given back")


def test_a_hundred_hear_of_the_same_events_in_order() -> None:
    """Among them one who never reads and ten who leave in between; each of the others misses nothing."""
    with stage(settings="[limits]\nretries = 0\n") as house, ExitStack() as stack:
        house.wl("daemon", "start")
        over(house, give(house, "Before", "exit 3"))  # with the first process comes a socket to who starts them
        before = descriptors(house, "socket:")
        doors = [stack.enter_context(subscriber(house, "/events?since=0")) for _ in range(100)]
        for door in doors[90:]:
            _read_some(door)
            door.close()
        give(house, "Something", "echo said; exit 3")
        end = house.event("task.failed", since=house.event("task.failed")["seq"])["seq"]
        for door in doors[1:90]:
            assert _numbers(door, end) == list(range(1, end + 1))
        stack.close()
        until(lambda: descriptors(house, "socket:") <= before, "their connections to be given back")


def test_one_who_was_cut_off_goes_on_from_where_it_was(loud: Stage) -> None:
    """The number of the last event it got is all it needs: nothing is missed or told twice."""
    with subscriber(loud, "/events?since=0") as door:
        first = _numbers(door, 12)
    with subscriber(loud, f"/events?since={first[-1]}") as door:
        second = _numbers(door, 40)
    assert (first + second)[:40] == list(range(1, 41))


def _numbers(door: socket.socket, last: int) -> list[int]:
    """The numbers of the events as they come, up to one at least."""
    door.settimeout(WITHIN)
    found: list[int] = []
    with door.makefile("rb") as lines:
        for line in lines:
            if line.startswith(b"data: "):
                found.append(json.loads(line[6:])["seq"])
                if found[-1] >= last:
                    return found
    raise AssertionError(f"it ended after {found[-5:]}")
