"""A daemon that takes connections and does not answer: commands say so, what to do, and go on waiting."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fake_daemon import FakeDaemon
from typing_room import WITHIN, Keyboard

from forked import WINDLASS
from patience import until
from windlass.cli.connection import launch
from windlass.cli.connection.frozen import process

INSIDE = {"WINDLASS_RUN": "r1", "WINDLASS_AGENT": "coder"}
AGENTS: dict[str, Any] = {"as_of": 1.0, "items": []}
DEAF = """
import signal, socket, sys
[signal.signal(number, signal.SIG_IGN) for number in (signal.SIGTERM, signal.SIGINT)]
door = socket.socket(socket.AF_UNIX)
door.bind(sys.argv[1])
door.listen()
print("listens", flush=True)
while True:
    signal.pause()
"""
"""A program that listens, answers nobody, and does not leave when it is asked."""
IMPATIENT = (
    "import sys; from windlass.cli import main; from windlass.cli.commands import daemon; "
    "daemon._ANSWERS_WITHIN = daemon._LEAVES_WITHIN = 0.3; sys.argv[0] = 'windlass'; main.run()"
)


@contextmanager
def deaf(home: Path) -> Iterator[subprocess.Popen[str]]:
    """A daemon in a process of its own that answers nobody."""
    home.mkdir()
    program = [sys.executable, "-c", DEAF, str(home / "daemon.sock")]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "listens\n"
        try:
            yield process
        finally:
            process.kill()


def impatient(keyboard: Keyboard, *words: str) -> subprocess.CompletedProcess[str]:
    """Type a command of a program that waits less long for the daemon to leave."""
    program = [sys.executable, "-c", IMPATIENT, *words]
    return subprocess.run(
        program, capture_output=True, text=True, env=keyboard.environment, timeout=WITHIN, check=False
    )


class TestItIsSaid:
    @pytest.mark.parametrize(
        ("number", "state", "advice"),
        [
            (signal.SIGSTOP, "T", "`kill -CONT {pid}` lets it go on. `windlass daemon stop --force` ends it"),
            (signal.SIGCONT, "S", "`windlass daemon logs` may say why. `windlass daemon stop --force` ends it"),
        ],
    )
    def test_which_process_in_which_state_and_what_to_do(
        self, keyboard: Keyboard, number: signal.Signals, state: str, advice: str
    ) -> None:
        """On standard error, once; programs read nothing on standard output."""
        with deaf(keyboard.home) as daemon:
            daemon.send_signal(number)
            until(lambda: process(daemon.pid)[0] == state, f"state {state}")
            command = keyboard.open("list", "--json")
            assert command.stderr
            said = command.stderr.readline() + command.stderr.readline()
            assert f"the daemon (pid {daemon.pid}, up " in said
            assert "took the connection" in said
            assert f"(state {state}). Still waiting." in said
            assert advice.format(pid=daemon.pid) in said
            assert command.poll() is None, "it goes on waiting"
            command.kill()  # before the daemon ends: it would start the next one
            assert command.communicate(timeout=WITHIN) == ("", "")

    def test_one_that_is_stopped_is_not_waited_for_long(self, keyboard: Keyboard) -> None:
        """Nobody waits two minutes for what is known: the error says once more what to do."""
        with deaf(keyboard.home) as daemon:
            daemon.send_signal(signal.SIGSTOP)
            ended = keyboard.type("list", "--json")
            assert (ended.returncode, ended.stdout) == (7, "")
            error = ended.stderr.partition("The daemon did not answer in time.")[2]
            assert f"`kill -CONT {daemon.pid}` lets it go on. `windlass daemon stop --force` ends it" in error

    def test_an_agent_is_not_told_to_end_it(self, keyboard: Keyboard) -> None:
        """It may not, and goes on waiting."""
        with deaf(keyboard.home):
            command = keyboard.open("agent", "list-messages", **INSIDE)
            assert command.stderr
            assert "answers nobody" in command.stderr.readline()
            assert command.stderr.readline() == "A person can wake or end it.\n"
            command.kill()
            command.communicate()

    def test_a_request_that_does_not_fit_is_no_silent_wait(self, keyboard: Keyboard) -> None:
        """The daemon does not take all of it, and that is said, too."""
        with deaf(keyboard.home) as daemon:
            (keyboard.folder / "long").write_text("x" * 3_000_000)
            with (keyboard.folder / "long").open() as text:
                words = (*WINDLASS, "context", "document", "write", "-")
                environment = keyboard.environment | INSIDE
                command = subprocess.Popen(words, stdin=text, stderr=subprocess.PIPE, text=True, env=environment)
            assert command.stderr
            assert f"pid {daemon.pid}" in command.stderr.readline()
            command.kill()
            command.communicate()


class TestItIsNotSaid:
    def test_of_one_that_answers_others(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """A request may take long; the daemon is asked something easy beside it, and answers that."""
        asked = threading.Event()

        def slowly(_: str) -> Any:
            assert asked.wait(WITHIN)
            return AGENTS

        def easy(_: str) -> Any:
            if sum(path == "/status" for _, path, *_ in daemon.asked) == 2:
                asked.set()
            return {"pid": os.getpid()}

        daemon.teach("GET /agents", slowly)
        daemon.teach("GET /status", easy)
        ended = keyboard.type("list", "--json")
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "[]\n", "")


class TestStop:
    def test_who_is_asked_to_leave_is_who_listened(self, keyboard: Keyboard) -> None:
        """Not a process that has its number later: the one that listened is pinned, and known to have ended."""
        with deaf(keyboard.home) as daemon, launch.listener(str(keyboard.home)) as found:
            assert (found.pid, found.has_ended(0.0)) == (daemon.pid, False)
            found.signal(signal.SIGKILL)
            assert found.has_ended(WITHIN)
            assert daemon.wait() == -signal.SIGKILL
            found.signal(signal.SIGTERM)  # reaches nobody
            held = Path(f"/proc/self/fdinfo/{found.descriptor}").read_text()
            assert "Pid:\t-1\n" in held

    def test_nobody_is_found_where_nobody_listens(self, keyboard: Keyboard) -> None:
        """There is nobody to wait for, and nobody to signal."""
        with launch.listener(str(keyboard.home)) as found:
            assert (found.pid, found.has_ended(0.0)) == (0, True)

    def test_one_that_does_not_leave_is_killed_only_by_force(self, keyboard: Keyboard) -> None:
        """Without, the command says how."""
        with deaf(keyboard.home) as daemon:
            ended = impatient(keyboard, "daemon", "stop")
            assert (ended.returncode, ended.stdout) == (7, "")
            assert "windlass daemon stop --force" in ended.stderr
            assert daemon.poll() is None
            threading.Thread(target=daemon.wait, daemon=True).start()
            ended = impatient(keyboard, "daemon", "stop", "--force")
            assert (ended.returncode, ended.stdout) == (0, f"Stopped, pid {daemon.pid}.\n")
            assert daemon.wait() == -signal.SIGKILL

    def test_status_ends_with_exit_code_7(self, keyboard: Keyboard) -> None:
        """Nothing is on standard output that a program could take for an answer."""
        with deaf(keyboard.home):
            ended = impatient(keyboard, "daemon", "status", "--json")
            assert (ended.returncode, ended.stdout) == (7, "")
            assert "The daemon did not answer in time." in ended.stderr
