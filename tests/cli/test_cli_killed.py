"""Whether the last daemon of a home was killed, or left in order: only the first is started again by itself."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from windlass.cli.connection.launch import was_killed


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose lock names a process that has ended."""
    ended = subprocess.Popen([sys.executable, "-S", "-c", ""])
    ended.wait()
    (tmp_path / "daemon.lock").write_text(f"{ended.pid}\n")
    return tmp_path


@pytest.fixture
def stale(home: Path) -> Path:
    """The same, with a socket that nobody listens on."""
    folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(f"/proc/self/fd/{folder}/daemon.sock")  # a short way to a path of any length
    os.close(folder)
    return home


def test_a_socket_that_nobody_answers_tells_of_a_kill(stale: Path) -> None:
    """One that leaves in order takes its socket away."""
    assert was_killed(str(stale))


def test_no_socket_is_no_kill(home: Path) -> None:
    """Someone has stopped it: it is not started again behind their back."""
    assert not was_killed(str(home))


def test_an_error_of_another_kind_is_no_kill(home: Path) -> None:
    """A path that can't be reached tells nothing of the daemon."""
    (home / "daemon.sock").symlink_to("daemon.sock")

    assert not was_killed(str(home))


def test_a_home_without_a_lock_had_no_daemon(tmp_path: Path) -> None:
    """Nor was one killed there."""
    assert not was_killed(str(tmp_path))
