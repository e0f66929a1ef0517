"""Many speak to many at once, in every way there is: each hears its own, once, in each speaker's order."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest
from e2e_stage import Stage, stage

import patience
import sample
from patience import until

MESSAGES = 200 if sample.long() else 40
"""Of each voice."""
WAYS = ("socket", "tools", "file")
"""How the voices speak, in turn; but the first speaks by commands, each a process of its own."""
CROWDS = [(2, 0), (20, 0), (5, 10), (2, 10), (20, 10)]
"""How many voices, and how often the daemon dies meanwhile."""
SETTINGS = "[limits]\nruns = 24\n[daemon]\nstop_grace_seconds = 0.5\n"


def voices(house: Stage, count: int) -> list[str]:
    """So many agents, each in its run, in ways that differ; they begin when all are there."""
    house.wl("init", "--checks", "true")
    names = [
        house.work(
            f"Speak {place}",
            f"{sys.executable} {Path(__file__).with_name('voice.py')} {house.flag('names')} "
            f"{house.flag(f'notes-{place}')} {MESSAGES} {_way(place)} {patience.seconds(200)}",
        )
        for place in range(count)
    ]
    for name in names:
        house.pid(name)
    return names


def _way(place: int) -> str:
    """How the voice at a place speaks."""
    return WAYS[place % len(WAYS)] if place else "command"


def heard(house: Stage, place: int) -> list[tuple[str, str, int]]:
    """What one has noted: the message's id, who says so, and the number."""
    file = house.flag(f"notes-{place}")
    lines = file.read_text().splitlines() if file.exists() else []
    spoken = [line.split() for line in lines]
    assert [words for words in spoken if words[2] != "says"] == []
    return [(words[0], words[1], int(words[3])) for words in spoken]


def said_to(place: int, count: int) -> Counter[int]:
    """How often each speaker, by its place, says something to this one."""
    others = (each for each in range(count) if each != place)
    return Counter(
        other for other in others for number in range(MESSAGES) if (other + 1 + number % (count - 1)) % count == place
    )


@pytest.mark.slow
@pytest.mark.parametrize(("count", "deaths"), sample.VOICES.of(CROWDS))
def test_each_hears_its_own_once_and_in_order(count: int, deaths: int) -> None:
    """Also where the daemon is killed again and again: whoever was cut off says it again, under the same key."""
    with stage(settings=SETTINGS, WINDLASS_SANDBOX="off") as house:
        names = voices(house, count)
        draft = house.flag("names.draft")
        draft.write_text("\n".join(names))
        draft.rename(house.flag("names"))

        def total() -> int:
            return sum(len(heard(house, each)) for each in range(count))

        for death in range(deaths):
            until(lambda due=(death + 1) * count * MESSAGES // (deaths + 2): total() >= due, "talk", within=200)  # type: ignore[misc]  # mypy can't tell the type of a lambda's default
            os.kill(house.daemon, signal.SIGKILL)
            house.wl("list")
        over = ("completed", "error", "stopped")
        until(lambda: all(house.agent(each)["status"] in over for each in names), "all to end", within=200)
        assert [house.wl("logs", each).out for each in names if len(house.agent(each)["runs"]) > 1] == []
        for place in range(count):
            notes = heard(house, place)
            assert [key for key, times in Counter(key for key, _, _ in notes).items() if times > 1] == []
            assert Counter(sender for _, sender, _ in notes) == {
                names[each]: times for each, times in said_to(place, count).items()
            }
            for name in names:
                numbers = [number for _, sender, number in notes if sender == name]
                way = _way(names.index(name))
                assert numbers == sorted(numbers), f"{names[place]} heard {name} ({way}) out of order"
        house.wl("doctor", "--check")
