"""A daemon that was stopped by a signal: commands name it, go on when it does, and `daemon stop` ends it."""

from __future__ import annotations

import json
import os
import signal

import pytest
from e2e_stage import WITHIN, Stage
from process_table import lives


@pytest.mark.parametrize("words", [("list", "--json"), ("watch", "--since", "0")])
def test_who_waits_is_told_and_goes_on_when_the_daemon_does(house: Stage, words: tuple[str, ...]) -> None:
    """A request and a stream alike; what a program reads on standard output is whole."""
    house.wl("send", "Hello.", "--to", "human")
    pid = house.daemon
    os.kill(pid, signal.SIGSTOP)
    waiting = house.begin(*words)
    try:
        assert waiting.stdout
        assert waiting.stderr
        said = waiting.stderr.readline() + waiting.stderr.readline()
    finally:
        os.kill(pid, signal.SIGCONT)
    assert f"the daemon (pid {pid}, up ".encode() in said
    assert f"`kill -CONT {pid}` lets it go on.".encode() in said
    if words[0] == "list":
        out, err = waiting.communicate(timeout=WITHIN)
        assert (json.loads(out), err, waiting.returncode) == ([], b"", 0)
    else:
        assert json.loads(waiting.stdout.readline())["seq"] == 1


def test_a_stopped_daemon_is_ended_in_order(house: Stage) -> None:
    """It goes on only to leave: its socket is gone, and the next command starts another."""
    house.wl("list")
    pid = house.daemon
    os.kill(pid, signal.SIGSTOP)
    assert house.wl("daemon", "status", "--json", code=7).out == ""
    told = house.wl("daemon", "stop")
    assert told.out == f"Stopped, pid {pid}.\n"
    assert not lives(pid)
    assert not (house.state / "daemon.sock").exists()
    house.wl("list")
    assert house.daemon != pid
