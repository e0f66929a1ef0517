"""No room for the store: agents go on, one clear error is told, and nothing is lost when there is room again."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Iterator

import pytest
from e2e_stage import WITHIN, Stage, adds, lines, stage
from process_table import inhabitants

from forked import WINDLASS
from patience import until
from small_disk import can_mount, fill, small_disk

UNAVAILABLE = 6
SIZE = "16m"
NO_ROOM = 16384
"""Bytes that a file may have: a log fits, a store does not."""


MEDIA = ("limit", *(["disk"] if can_mount() else []))
"""A limit on the daemon's files is no full disk, but everyone can set it."""


class Narrow:
    """A stage whose home can run out of room."""

    def __init__(self, house: Stage, medium: str) -> None:
        self.house = house
        self.fill, self.clear = (
            (self._fill_disk, self._clear_disk) if medium == "disk" else (self._limit, self._no_limit)
        )

    def _fill_disk(self) -> None:
        fill(self.house.state / "ballast")

    def _clear_disk(self) -> None:
        (self.house.state / "ballast").unlink()

    def _limit(self) -> None:
        resource.prlimit(self.house.daemon, resource.RLIMIT_FSIZE, (NO_ROOM, resource.RLIM_INFINITY))

    def _no_limit(self) -> None:
        resource.prlimit(self.house.daemon, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


@pytest.fixture(params=MEDIA)
def narrow(request: pytest.FixtureRequest) -> Iterator[Narrow]:
    with stage() as house:
        if request.param == "limit":
            yield Narrow(house, request.param)
            return
        kept = (house.state / "config.toml").read_text()
        with small_disk(house.state, SIZE):
            (house.state / "config.toml").write_text(kept)
            try:
                yield Narrow(house, request.param)
            finally:
                house.wl("daemon", "stop", code=None)
                until(lambda: not inhabitants(house.folder), "everyone to leave")


def test_agents_go_on_and_the_daemon_catches_up(narrow: Narrow) -> None:
    """What an agent says meanwhile is kept later, every byte once; and one error says what is wrong."""
    house = narrow.house
    speak, spoken, go = house.flag("speak"), house.flag("spoken"), house.flag("go")
    speaks = ("echo one", house.waits_for(speak), "echo two", f"touch {spoken}")
    name = house.work("Add b", lines(*speaks, house.waits_for(go), adds("b.txt")))
    pid = house.pid(name)
    until(lambda: house.wl("logs", name).out == "one\n", "the first words")
    narrow.fill()
    speak.touch()
    until(spoken.exists, "the agent to go on")

    trouble = until(lambda: bad(house, "ticks"), "doctor to know")
    assert f"{house.state}/windlass.db failed" in trouble["detail"]
    assert "disk" in trouble["hint"]
    told = house.wl("work", "More", "--command", "true", code=UNAVAILABLE)
    assert "disk" in told.err
    assert house.wl("logs", name).out == "one\n"
    assert house.agent(name)["status"] == "running"
    until(lambda: bad(house, "ticks")["detail"].count("(1 times") == 0, "a second try")

    narrow.clear()
    until(lambda: house.wl("logs", name).out == "one\ntwo\n", "it to catch up")
    assert house.pid(name) == pid
    house.event("daemon.troubled")
    go.touch()
    house.event("change.landed")
    house.wl("doctor", "--check")
    troubles = [each["message"] for each in house.events() if each["kind"] == "daemon.troubled"]
    copied = [words for words in troubles if "windlass.db.copy failed" in words]  # its hour may be meanwhile
    assert len(troubles) == len(copied) + 1
    assert len(copied) <= 1
    log = (house.state / "daemon.log").read_text()
    assert 1 <= log.count("windlass.db failed") <= 5
    assert "Traceback" not in log


def bad(house: Stage, what: str) -> dict[str, str]:
    """What doctor finds wrong with one thing."""
    found = [each for each in house.ask("/doctor")["items"] if each["name"] == what and not each["ok"]]
    return found[0] if found else {}


def test_a_daemon_that_finds_no_room_says_so_and_starts_later(house: Stage) -> None:
    """It names the store and the remedy, leaves the store as it is, and starts when there is room."""
    house.land("Add b", adds("b.txt"))
    house.wl("daemon", "stop")
    before = (house.state / "windlass.db").read_bytes()
    ran = subprocess.run(
        (*WINDLASS, "list"),
        cwd=house.repo,
        env=house.environment,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (NO_ROOM, NO_ROOM)),
        capture_output=True,
        text=True,
        timeout=WITHIN,
        check=False,
    )
    assert ran.returncode == UNAVAILABLE, ran
    assert f"{house.state}/windlass.db" in ran.stderr
    assert "free space" in ran.stderr
    assert (house.state / "windlass.db").read_bytes() == before
    house.wl("doctor", "--check")
