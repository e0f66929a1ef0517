"""Whoever waits goes on through the daemon's death: a person's command starts the next one, a run's waits for it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from e2e_stage import WITHIN, Stage, stage
from process_table import lives, waits

from patience import until


@pytest.fixture
def house() -> Iterator[Stage]:
    """A person, and an agent that does nothing until it is told to."""
    with stage(WINDLASS_SANDBOX="off") as made:
        made.environment["AGENT"] = made.work("Wait", made.waits_for(made.flag("go")))
        made.pid(made.environment["AGENT"])
        yield made
        made.wl("stop", "--all")


def kill(house: Stage) -> int:
    """SIGKILL the daemon; returns the pid that it had."""
    pid = house.daemon
    os.kill(pid, signal.SIGKILL)
    until(lambda: not lives(pid), "the daemon to die")
    return pid


def serves(house: Stage) -> int:
    """The pid of the daemon that lives; 0 while there is none, or its lock is just being written."""
    return house.daemon if lives(house.daemon) else 0


WAITING = [
    ("ask", "Which port?", "--agent-id", "AGENT", "--timeout", f"{2 * WITHIN}s"),
    ("listen", "--agent-id", "AGENT", "--timeout", f"{2 * WITHIN}s"),
    ("context", "wait", "--timeout", f"{2 * WITHIN}s"),
    ("watch",),
    ("logs", "AGENT", "-f"),
]


@pytest.mark.parametrize("words", WAITING, ids=lambda words: words[0])
def test_a_person_who_waits_gets_the_next_daemon(house: Stage, words: tuple[str, ...]) -> None:
    """One that was killed is started again by whoever waits for something: nobody else may come along."""
    waiting = house.begin(*(house.environment["AGENT"] if word == "AGENT" else word for word in words))
    until(waits(waiting), "the command to wait")
    old = kill(house)
    until(lambda: serves(house) not in (0, old), "the next daemon")
    assert waiting.poll() is None


def test_one_that_was_stopped_is_not_started(house: Stage) -> None:
    """Whoever stops the daemon means it; the one who waits says so, and goes on with the next one."""
    watching = house.begin("watch")
    until(waits(watching), "the command to wait")
    house.wl("daemon", "stop")
    assert watching.stderr
    assert b"the daemon has gone" in watching.stderr.readline()
    house.wl("daemon", "status", code=6)
    house.wl("list")
    assert watching.stdout
    assert watching.stdout.readline()
