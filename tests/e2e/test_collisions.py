"""The radar with a real daemon, real git and real processes: seen, told, held."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from e2e_stage import Stage, lines

from patience import until

LONG = "".join(f"line {number}\n" for number in range(20))


pytestmark = pytest.mark.xdist_group("collisions")  # they share one daemon


@pytest.fixture
def house(room: Stage) -> Iterator[Stage]:
    room.commit({"shared.txt": LONG})
    yield room
    room.wl("stop", "--all")


def busy(house: Stage, title: str, text: str, *more: str) -> str:
    """An agent that has edited the shared file, and waits for a sign to commit it."""
    command = lines(
        f"sed -i 's/line 5$/{text}/' shared.txt",
        f"echo edited && touch '{house.flag(title)}'",
        house.waits_for(house.flag("go")),
        "git commit -q -a -m Edit",
    )
    name = house.work(title, command, *more)
    until(house.flag(title).exists, f"{title} to have edited")
    return name


def test_a_collision_is_shown_before_anyone_has_committed_and_the_help_keeps_its_word(house: Stage) -> None:
    """For people and for programs; watching tells when it is over."""
    one, other = busy(house, "one", "mine"), busy(house, "other", "theirs")
    value = house.wl("radar", "--json", "--here").value
    (collision,) = value["collisions"]
    assert (collision["severity"], collision["files"]) == ("conflict", ["shared.txt"])
    assert set(collision["agents"]) == {one, other} == {each["agent"] for each in value["agents"]}
    assert "shared.txt" in house.wl("radar").out
    watching = house.begin("radar", "--watch", "--json")
    assert watching.stdout is not None
    assert len(json.loads(watching.stdout.readline())["collisions"]) == 1
    house.wl("stop", other)
    assert json.loads(watching.stdout.readline())["collisions"] == []


def test_agents_are_told_once_each_if_that_is_set(house: Stage) -> None:
    """By a message from the system, without anyone having asked."""
    house.wl("config", "set", "radar.act", "tell")
    names = {busy(house, "one", "mine"), busy(house, "other", "theirs")}
    first = house.event("message.sent")
    house.event("message.sent", since=first["seq"])
    assert all(len(house.wl("inbox", name, "--json").value) == 1 for name in names)


def test_a_task_is_held_if_that_is_set_and_begins_by_itself_when_it_is_free(house: Stage) -> None:
    """`list` and `show` say what it waits for."""
    house.wl("config", "set", "radar.act", "hold")
    one = busy(house, "one", "mine")
    later = house.work("Later", "echo more >> shared.txt && git commit -q -a -m More", "--paths", "shared.txt")
    held = f"held by the radar: {one} is at shared.txt"
    until(lambda: house.agent(later)["evidence"] == held, "the radar to hold it")
    assert held in house.wl("list").out and held in house.wl("show", later).out
    house.flag("go").touch()
    until(
        lambda: [each for each in house.queue() if each["agent"] == later and each["state"] == "landed"], "it to land"
    )


@pytest.mark.parametrize("bad", ["/etc/passwd", "../up", ""])
def test_a_path_that_leads_elsewhere_is_refused(house: Stage, bad: str) -> None:
    """With what is meant, and before anything is created."""
    told = house.wl("work", "Task", "--command", "true", "--paths", bad, code=2)
    assert "src/auth" in told.err
    assert house.wl("list", "--here", "--json").value == []
