"""Callers of the socket: pages, the greedy and the slow; and what none of them, nor a check, may learn."""

from __future__ import annotations

import resource
import select
import socket
import sqlite3
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest
from e2e_stage import WITHIN, Stage, adds, lines, stage
from input_stage import SECRET, Desk, call

from forked import WINDLASS
from patience import until

pytestmark = pytest.mark.xdist_group("bad callers")

FEW = 256
"""Descriptors of a daemon that must not be taken up by callers alone."""


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    with stage() as house:
        subprocess.run(
            (*WINDLASS, "daemon", "start"),
            cwd=house.repo,
            env=house.environment,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (FEW, FEW)),
            capture_output=True,
            timeout=WITHIN,
            check=True,
        )
        yield Desk(house)


def dial(house: Stage) -> socket.socket:
    door = socket.socket(socket.AF_UNIX)
    door.settimeout(WITHIN)
    door.connect(str(house.state / "daemon.sock"))
    return door


def answer(door: socket.socket) -> bytes:
    """All that is answered until the other side hangs up."""
    said = b""
    try:
        while piece := door.recv(65536):
            said += piece
    except ConnectionResetError:
        pass
    return said


class TestPages:
    @pytest.mark.parametrize(
        "headers",
        [
            {"Host": "evil.example"},
            {"Host": "windlass.evil.example"},
            {"Host": "evil.example:80"},
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Origin": "http://windlass"},
            {"Sec-Fetch-Site": "cross-site"},
        ],
        ids=str,
    )
    def test_may_neither_look_nor_act(self, desk: Desk, headers: dict[str, str]) -> None:
        """Someone may have forwarded the socket to where a browser reaches it: nothing is shown, done or stopped."""
        for method, path in (("GET", "/agents"), ("GET", "/events"), ("POST", "/shutdown"), ("POST", "/stop")):
            number, said = call(desk.house, method, path, headers=headers)
            assert number == 403, (path, said)
        desk.is_sound()

    def test_get_no_leave_to_ask_from_elsewhere(self, desk: Desk) -> None:
        """No answer has a CORS header, and a preflight is no route."""
        with dial(desk.house) as door:
            door.sendall(b"OPTIONS /agents HTTP/1.1\r\nHost: windlass\r\nOrigin: null\r\nConnection: close\r\n\r\n")
            said = answer(door).lower()
        assert b"access-control" not in said
        assert not said.startswith(b"http/1.1 2")

    def test_called_by_its_usual_names_it_answers(self, desk: Desk) -> None:
        """A person's own tools say localhost."""
        for host in ("windlass", "localhost", "localhost:80", "127.0.0.1"):
            assert call(desk.house, "GET", "/status", headers={"Host": host})[0] == 200


class TestGreed:
    def test_a_head_without_end_is_refused(self, desk: Desk) -> None:
        """431 after 64 kB, and no more is read."""
        with dial(desk.house) as door:
            door.sendall(b"GET /status HTTP/1.1\r\nHost: windlass\r\nX: ")
            with pytest.raises(OSError, match=r"Broken pipe|reset"):
                for _ in range(2000):
                    door.sendall(b"x" * 65536)
        with dial(desk.house) as door:
            with suppress(OSError):  # it has heard enough, and does not wait for the rest
                door.sendall(b"GET /status HTTP/1.1\r\nHost: windlass\r\nX: " + b"x" * 70_000)
            assert answer(door).startswith(b"HTTP/1.1 431 ")
        desk.is_sound()

    def test_a_body_without_end_is_refused(self, desk: Desk) -> None:
        """Two gigabytes are announced; some megabytes of it are enough to know."""
        with dial(desk.house) as door:
            door.sendall(b"POST /tasks HTTP/1.1\r\nHost: windlass\r\nContent-Length: 2000000000\r\n\r\n")
            sent = 0
            try:
                while sent < 100_000_000:
                    sent += door.send(b"x" * 65536)
            except OSError:
                pass
            assert sent < 30_000_000
        desk.is_sound()

    def test_a_slow_head_is_not_waited_for(self, desk: Desk) -> None:
        """Five seconds for a head, also when a letter comes now and then; others are answered meanwhile."""
        began = time.monotonic()
        with dial(desk.house) as silent, dial(desk.house) as slow:
            slow.sendall(b"GET /sta")
            desk.is_sound()
            slow.sendall(b"tus HT")
            assert answer(slow).startswith(b"HTTP/1.1 408 ")
            assert answer(silent).startswith(b"HTTP/1.1 408 ")
        assert time.monotonic() - began > 3, "it was given no time"

    def test_many_callers_leave_room_for_the_work(self, desk: Desk) -> None:
        """More connections than descriptors: half of those stay free for agents and git, and all is well after it."""
        house = desk.house
        with ExitStack() as opened:
            doors = [opened.enter_context(dial(house)) for _ in range(2 * FEW)]
            answered = until(lambda: _at_least(FEW, select.select(doors, [], [], 0)[0]), "most to be sent away")
            assert {each.recv(12) for each in answered[:FEW]} == {b"HTTP/1.1 503"}
            until(lambda: descriptors(house) < FEW * 3 // 4, "room to be left")
        until(lambda: descriptors(house) < FEW // 4, "the callers to be gone")
        desk.is_sound()


def descriptors(house: Stage) -> int:
    """How many files and sockets the daemon has open."""
    return len(list(Path(f"/proc/{house.daemon}/fd").iterdir()))


def _at_least(number: int, found: list[socket.socket]) -> list[socket.socket]:
    return found if len(found) >= number else []


# ── what nobody may learn ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def lived() -> Iterator[Stage]:
    """A home in which something was done, with a secret in the daemon's environment and in git's settings."""
    with stage(CLOUD_TOKEN=SECRET, settings="[limits]\nreminders = 0\nretries = 0\n") as house:
        seen = house.flag("seen")
        (house.state / "config.toml").write_text(
            f"# token: {SECRET}\n[checks]\ncommand = '''env > {seen}; ! test -e bad'''\n[limits]\nreturns = 0\n"
        )
        home = Path(house.environment["HOME"])
        with (home / ".gitconfig").open("a") as file:
            file.write(f'[http]\n\textraHeader = "Authorization: {SECRET}"\n[credential]\n\tusername = {SECRET}\n')
        house.git("remote", "add", "origin", f"ssh://{SECRET}@x.example.com/x.git")
        house.git("config", "http.proxy", f"{SECRET}@x.example.com")
        house.land("Add b", adds("b.txt"))
        house.work("Break it", adds("bad"))
        house.event("change.held")
        house.wl("undo", "c1", "--wait", code=None)
        name = house.work("Fail", lines("echo half > half.txt", "git config --list", "windlass agent fail Hard."))
        house.event("task.failed")
        house.wl("rescue", "restore", f"{name}/r3", "--branch", "back")
        house.wl("work", "Fix it", "--command", "true", cwd=home, code=2)
        yield house


class TestSecrets:
    def test_of_the_daemons_environment_do_not_reach_checks(self, lived: Stage) -> None:
        """Not by that name, and not by another."""
        assert SECRET not in lived.flag("seen").read_text()
        assert "PATH=" in lived.flag("seen").read_text()

    def test_are_in_no_file_of_the_home(self, lived: Stage) -> None:
        """Not in the store, the log, a hub, a worktree or a run's folder."""
        with closing(sqlite3.connect(lived.state / "windlass.db")) as store:
            assert not [line for line in store.iterdump() if SECRET in line]
        files = [path for path in lived.state.rglob("*") if path.is_file() and path.name != "config.toml"]
        assert len(files) > 50
        assert [file for file in files if SECRET.encode() in file.read_bytes()] == []

    def test_are_in_nothing_that_is_told(self, lived: Stage) -> None:
        """Not in the stream of events, a list, a page, a receipt or a finding."""
        names = [each["name"] for each in lived.ask("/agents?all=1")["items"]]
        told = [str(lived.events())]
        for words in (("list", "--all"), ("queue", "--all"), ("doctor",), ("config", "get"), ("daemon", "status")):
            told.append(lived.wl(*words, "--json", code=None).out)
        told += [lived.wl("show", name, "--json").out + lived.wl("logs", name).out for name in names]
        told += [lived.wl("receipt", "c1", "--json").out, lived.wl("daemon", "logs").out]
        assert [each for each in told if SECRET in each] == []

    def test_everything_in_the_home_is_for_its_owner_only(self, lived: Stage) -> None:
        """Folders 0700 and files 0600; what git makes has git's own modes, in folders that nobody else can enter."""
        below = [each for part in ("runs", "gitconfig") for each in (lived.state / part).rglob("*")]
        (lived.state / "config.toml").unlink()  # the person's own
        for path in (lived.state, *lived.state.iterdir(), *below):
            mode = path.stat().st_mode
            assert not mode & 0o077, f"{path}: {stat.filemode(mode)}"
