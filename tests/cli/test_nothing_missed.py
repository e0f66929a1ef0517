"""A message reaches everyone who reads or waits for it, also if a reader or the daemon goes away in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from e2e_stage import WITHIN
from mcp_stage import Place
from process_table import waits
from test_mcp_bridge import bridge, killed

from patience import until

pytestmark = pytest.mark.xdist_group("mcp")


class Speaker:
    """An agent that says something to the person when it is told to."""

    def __init__(self, here: Place, name: str) -> None:
        self.house, self.words = here.house, f"{name} is done."
        self.go, self.done = here.house.flag(f"{name}.go"), here.house.flag(f"{name}.done")
        script = here.house.flag(f"{name}.sh")
        script.write_text(
            f"until [ -e {self.go} ]; do sleep 0.05; done\n"
            f'windlass context send "{self.words}" --to human\ntouch {self.done}\nsleep 100\n'
        )
        here.house.pid(here.house.work(f"Speak {name}", f"exec sh {script}"))

    def speak(self) -> None:
        """It has been said when this returns."""
        self.house.wl("list")
        self.go.touch()
        until(self.done.exists, "its words")


@contextmanager
def held(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """The process does nothing meanwhile."""
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def test_what_was_never_shown_is_read_again(here: Place) -> None:
    """A reader that left before it saw anything finds all of it the next time, and only then."""
    speaker, house = Speaker(here, "one"), here.house
    speaker.speak()
    theirs, ours = os.pipe()
    os.close(theirs)
    subprocess.run(
        (*house.program, "read"), cwd=house.repo, env=house.environment, stdout=ours, timeout=WITHIN, check=False
    )
    os.close(ours)
    [shown] = house.wl("read", "--json").value
    assert (shown["message"], shown["receipt"], shown["status"]) == (speaker.words, "acked", {"human": "acked"})
    assert house.wl("read", "--json").value == []
    [kept] = [each for each in house.wl("inbox", "--all", "--json").value if each["id"] == shown["id"]]
    assert kept == shown, "it looks as it will be, and then it is so"


def test_waiting_over_mcp_misses_nothing_when_the_daemon_dies(here: Place) -> None:
    """A message that is sent between the daemon's death and the second try ends the wait."""
    speaker = Speaker(here, "two")
    with bridge(here) as lines:
        lines.call("wait", "channel_wait", timeout=30)
        until(waits(lines.process), "the wait")
        with held(lines.process):
            killed(here)
            speaker.speak()
        heard = lines.read()["result"]["structuredContent"]["entries"]
    assert [each["message"] for each in heard] == [speaker.words]


def test_waiting_by_command_misses_nothing_when_the_daemon_dies(here: Place) -> None:
    """The same for `windlass context wait`."""
    speaker, house = Speaker(here, "three"), here.house
    with subprocess.Popen(
        (*house.program, "context", "wait", "--timeout", f"{2 * WITHIN}s", "--json"),
        cwd=house.repo,
        env=house.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as waiting:
        until(waits(waiting), "the wait")
        with held(waiting):
            killed(here)
            speaker.speak()
        out, err = waiting.communicate(timeout=2 * WITHIN)
    assert waiting.returncode == 0, err
    assert [load["message"] for load in json.loads(out)] == [speaker.words]
