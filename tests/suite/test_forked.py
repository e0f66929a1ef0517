"""What the suite forks is what a person starts: the same words, variables, folder, streams, signals and limits."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from e2e_stage import WITHIN, Stage, stage
from process_table import waits

import fork_server
import forked
from patience import until
from small_disk import can_mount, small_disk

WAYS = ("yes", "no")
SIGNALS = ("SigIgn", "SigCgt", "Umask", "NoNewPrivs", "Seccomp")


def looked_at(pid: int, house: Stage) -> dict[str, Any]:
    """What the kernel says of a process, with the stage's own folder left out."""
    entry = Path(f"/proc/{pid}")
    status = until(lambda: unblocked(entry / "status"), "a process that hears every signal")
    stat = (entry / "stat").read_text().rpartition(")")[2].split()
    return {
        "words": parts(entry / "cmdline", house),
        "variables": sorted(parts(entry / "environ", house)),
        "folder": here(str((entry / "cwd").readlink()), house),
        "program": (entry / "exe").readlink(),
        "limits": (entry / "limits").read_text(),
        "signals": {name: status[name] for name in SIGNALS},
        "leads": (int(stat[2]) == pid, int(stat[3]) == pid),
        "streams": [here(re.sub(r"\d+", "N", str((entry / f"fd/{number}").readlink())), house) for number in range(3)],
    }


def unblocked(file: Path) -> dict[str, str]:
    """A process's status, once no signal is blocked: where it begins a thread or a program, all are for a moment."""
    status = dict(re.findall(r"^(\w+):[ \t]*(.*)$", file.read_text(), re.MULTILINE))
    return {} if int(status["SigBlk"], 16) else status


def parts(file: Path, house: Stage) -> list[str]:
    return [here(part, house) for part in file.read_text().split("\0") if part]


def here(text: str, house: Stage) -> str:
    return text.replace(re.sub(r"\d+", "N", str(house.folder)), "HERE").replace(str(house.folder), "HERE")


@contextmanager
def begun(way: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Stage, int]]:
    """A stage with a command that goes on; returns its pid."""
    monkeypatch.setenv(forked.FORK, way)
    with stage() as house:
        house.wl("daemon", "start")
        watching = house.begin("watch", "--since", "0", "--kind", "daemon.*")
        until(waits(watching), "its connection")
        assert isinstance(watching, forked.ForkedCommand) == (way == "yes")
        yield house, watching.pid


@pytest.mark.parametrize("of_daemon", [False, True], ids=["command", "daemon"])
def test_a_forked_process_looks_like_the_program(of_daemon: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks into /proc sees no difference, of a command or of the daemon that it started."""
    seen = []
    for way in WAYS:
        with begun(way, monkeypatch) as (house, pid):
            seen.append(looked_at(house.daemon if of_daemon else pid, house))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("way", WAYS)
def test_a_command_ends_as_the_program_does(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its code, by Ctrl-C and by a signal."""
    monkeypatch.setenv(forked.FORK, way)
    with stage() as house:
        assert "No such command" in house.wl("nonsense", code=2).err
        for number, code in ((signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)):
            house.wl("daemon", "start")
            watching = house.begin("watch")
            until(waits(watching), "its work")
            os.kill(watching.pid, number)
            assert watching.wait(WITHIN) == code


@pytest.mark.parametrize(
    "more",
    [{"PYTHONUTF8": "0"}, {"LC_ALL": "C"}, {"LONG": "x" * fork_server.ROOM_FOR_VARIABLES}],
    ids=["mode", "locale", "long"],
)
def test_what_an_interpreter_heeds_at_its_start_is_not_forked(more: Mapping[str, str]) -> None:
    """Such a command is the program itself, in every run."""
    with stage() as house:
        assert not isinstance(house.begin("--version", **more), forked.ForkedCommand)


def test_a_command_that_can_not_begin_is_an_error() -> None:
    """Where the program could not be started, nothing is taken for its pid."""
    with stage() as house, pytest.raises(OSError, match="did not begin"):
        house.wl("--version", cwd=house.flag("missing"))


@pytest.mark.skipif(not can_mount(), reason="only root can mount a disk")
def test_a_forked_command_sees_the_disks_that_a_test_mounts() -> None:
    """Also where others were forked before."""
    with stage() as house:
        house.wl("--version")
        with small_disk(house.state, "10m"):
            house.wl("daemon", "start")
            assert (house.state / "daemon.sock").exists()
            house.wl("daemon", "stop")
