"""The output of `windlass radar`, for people and for programs."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from fake_daemon import FakeDaemon, Stream
from typing_room import Keyboard

import patience

COLLISION: dict[str, Any] = {
    "severity": "conflict",
    "agents": ["swift-otter", "calm-heron"],
    "with_main": False,
    "files": ["src/auth/login.py"],
    "paths": [],
    "sentence": "swift-otter and calm-heron conflict in src/auth/login.py: whoever lands second has to merge.",
    "age_seconds": 4.0,
    "project": "shop",
}
MAIN = COLLISION | {"agents": ["calm-heron"], "with_main": True, "files": [f"f{number}.py" for number in range(9)]}
AGENTS = [
    {"agent": "swift-otter", "project": "shop", "files": 3, "paths": [], "age_seconds": 4.0},
    {"agent": "calm-heron", "project": "shop", "files": 1, "paths": ["src/**"], "age_seconds": 65.0},
    {"agent": "new-finch", "project": "shop", "files": None, "paths": [], "age_seconds": None},
]


def picture(*collisions: dict[str, Any]) -> dict[str, Any]:
    return {"as_of": time.time(), "collisions": list(collisions), "agents": AGENTS}


@pytest.fixture
def daemon(keyboard: Keyboard) -> Iterator[FakeDaemon]:
    with FakeDaemon(keyboard.home) as fake:
        fake.teach("GET /radar", lambda _: picture(COLLISION, MAIN))
        yield fake


def test_a_line_for_each_collision_with_its_age_and_what_it_comes_to(keyboard: Keyboard, daemon: FakeDaemon) -> None:
    """Who, on what, how old; then the worst as a sentence, and how many were compared."""
    lines = keyboard.type("radar").stdout.splitlines()
    assert lines[0].split() == ["SEVERITY", "AGENTS", "ON", "AGE"]
    assert lines[1].split() == ["conflict", "swift-otter", "and", "calm-heron", "src/auth/login.py", "4", "s"]
    assert "calm-heron and main" in lines[2] and "and 4 more" in lines[2]
    assert "whoever lands second has to merge" in lines[3]
    assert "Compared 3 agents; the oldest look is 1 min old; 1 could not be looked at yet." in lines[3]


def test_json_is_the_whole_picture(keyboard: Keyboard, daemon: FakeDaemon) -> None:
    """With the keys that the help promises."""
    value = json.loads(keyboard.type("radar", "--json").stdout)
    assert set(value) == {"as_of", "collisions", "agents"}
    text = keyboard.type("radar", "--help").stdout
    assert [key for key in [*value, *COLLISION, *value["agents"][0]] if key not in text] == []


def test_nothing_in_sight_is_said(keyboard: Keyboard, daemon: FakeDaemon) -> None:
    """With agents and without; and --here asks for this project."""
    daemon.teach("GET /radar", picture())
    assert "No collision in sight. Compared 3 agents" in keyboard.type("radar", "--here").stdout
    assert daemon.asked[-1][2].startswith("path=%2F")
    daemon.teach("GET /radar", picture() | {"agents": []})
    assert "No agent is at work" in keyboard.type("radar").stdout


@pytest.mark.parametrize("columns", [100, 60, 30])
def test_no_line_is_wider_than_the_terminal(keyboard: Keyboard, daemon: FakeDaemon, columns: int) -> None:
    """Names are shortened before anything wraps."""
    _, shown = keyboard.on_terminal("radar", columns=columns, NO_COLOR="1")
    assert max(map(len, shown.splitlines())) <= columns


def test_a_name_that_would_steer_the_terminal_is_shown_harmless(keyboard: Keyboard, daemon: FakeDaemon) -> None:
    """An agent chooses the names of its files."""
    daemon.teach("GET /radar", picture(COLLISION | {"files": ["\x1b[2Jx"], "sentence": "a and b conflict in \x1b[2Jx"}))
    assert "\x1b" not in keyboard.type("radar").stdout


def test_watching_prints_each_picture_as_it_comes_and_goes_on_after_a_restart(
    keyboard: Keyboard, daemon: FakeDaemon
) -> None:
    """With --json one object a line; a stream that is cut is asked for again."""
    end = threading.Event()
    streams = iter(
        [
            Stream.of(picture(COLLISION), picture(), cut=True),
            Stream((json.dumps(picture(MAIN)) + "\n" if number == 0 else _silence(end)) for number in range(2)),
        ]
    )
    daemon.teach("GET /radar/watch", lambda _: next(streams))
    watching = keyboard.open("radar", "--watch", "--json")
    try:
        assert watching.stdout is not None
        seen = [json.loads(watching.stdout.readline())["collisions"] for _ in range(3)]
        assert seen == [[COLLISION], [], [MAIN]]
    finally:
        watching.kill()
        watching.communicate()
        end.set()


def _silence(end: threading.Event) -> str:
    end.wait(patience.seconds(20))
    return ""
