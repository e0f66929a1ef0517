"""Windlass and the peer of side_by_side.py behind one face: list, start, message, idle, restart, as a user does it."""

from __future__ import annotations

import itertools
import os
import select
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.request import urlopen

from crowd import busy, daemon
from measure import CannotRun
from outside import PATIENCE, WINDLASS, Outside, answers, wait_for
from whole import SETTINGS

from windlass.daemon.lifecycle import prepare_home

PEER = "cli-agent-orchestrator"
WORD = "Word"

READER = """
import socket, sys
home, said, heard = sys.argv[1:]
open(said, "w").write("said")
since = ""
while True:
    line = socket.socket(socket.AF_UNIX)
    line.connect(home + "/daemon.sock")
    line.sendall(f"GET /messages/wait?timeout=60&since={since} HTTP/1.1\\r\\nHost: windlass\\r\\n".encode())
    line.sendall(b"Connection: close\\r\\n\\r\\n")
    answer = b""
    while part := line.recv(65536):
        answer += part
    since = answer.rpartition(b'"since":"')[2].partition(b'"')[0].decode()
    if b'"Word' in answer:
        open(heard, "w").write("heard")
"""
"""Our agent that listens: as a tool of an agent does, it waits on the socket."""

SCRIPT = """#!/bin/sh
printf '\u276f '
echo said >{said}
while read -r line; do
    case $line in */exit) exit ;; *Word*) echo heard >{heard} ;; esac
    printf '> MOCK: %s\\n\u276f ' "$line"
done
"""
"""The peer's agent: it prompts, reads a line, and answers, as its provider `mock_cli` expects."""


class Bell:
    """A pipe that an agent writes to; whoever waits for it is woken at once, and gives up after a while."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        self._end = os.open(path, os.O_RDWR | os.O_NONBLOCK)  # a writer never waits for a reader

    def after(self, act: Callable[[], subprocess.Popen[bytes]]) -> float:
        """Milliseconds from the act to the bell. The process that acts is waited for, too, but not measured."""
        with suppress(BlockingIOError):
            os.read(self._end, 4096)
        began = time.perf_counter()
        with act() as process:
            while not (rung := select.select([self._end], [], [], 1)[0]):
                if process.poll() or time.perf_counter() - began > PATIENCE / 5:
                    break
            took = (time.perf_counter() - began) * 1000
            said = process.communicate()[1]
        if not rung or process.returncode:
            raise CannotRun(f"{str(process.args)[:120]} ended with {process.returncode}: {said[-200:]!r}")
        return took


class Contestant(Protocol):
    """What both can do. Times are in milliseconds; `busy` is in seconds on a processor."""

    def list(self) -> float: ...
    def start(self) -> float: ...
    def message(self) -> float: ...
    def restart(self) -> float: ...
    def busy(self) -> float: ...


@dataclass(slots=True)
class Floor:
    """The least that could do the job."""

    hub: Path
    said: Bell
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def command(self) -> float:
        """A bare Python that ends."""
        return _timed([sys.executable, "-I", "-c", "pass"], dict(os.environ))

    def start(self) -> float:
        """A shared clone, and a spawn of a shell that says something."""
        clone = self.hub.with_name(f"clone{next(self.numbers)}")
        script = f"git clone -q --shared {self.hub} {clone} && cd {clone} && sh -c 'echo said >{self.said.path}'"
        return self.said.after(lambda: _begun(["sh", "-c", script], dict(os.environ)))

    def message(self) -> float:
        """A bare Python that writes to a pipe."""
        words = [sys.executable, "-I", "-c", "import sys; open(sys.argv[1], 'w').write('heard')", str(self.said.path)]
        return self.said.after(lambda: _begun(words, dict(os.environ)))


class Windlass:
    """Ours: a daemon, and agents that are shell commands, each in a worktree of its own."""

    def __init__(self, home: Path, source: Path) -> None:
        prepare_home(home)
        (home / "config.toml").write_text(SETTINGS)
        self.home, self.source = home, source
        self.said, self.heard = (Bell(home.with_name(f"{home.name}-{name}")) for name in ("said", "heard"))
        self.environment = os.environ | {"WINDLASS_HOME": str(home)}
        self.stack = ExitStack()
        self.asked = Outside(home, 0)
        self.restart()
        listener = [sys.executable, "-I", "-c", READER, str(home), str(self.said.path), str(self.heard.path)]
        self._work(f"exec {shlex.join(listener)}")
        self.listener = str(self.asked.ask("GET", "/agents")["items"][0]["name"])

    def close(self) -> None:
        """End the agents, and the daemon."""
        self.asked.windlass("stop", "--all", may_fail=True)
        wait_for(lambda: self.asked.live() == 0)
        self.stack.close()

    def list(self) -> float:
        return self.asked.windlass("list")

    def start(self) -> float:
        return self._work(f"echo said >{self.said.path}; exec sleep 3600")

    def message(self) -> float:
        return self.heard.after(lambda: self._begun("send", WORD, "--to", self.listener))

    def restart(self) -> float:
        """The agents live on meanwhile."""
        self.stack.close()
        began = time.perf_counter()
        process = self.stack.enter_context(daemon(self.home))
        self.asked = Outside(self.home, process.pid)
        wait_for(lambda: answers(self.asked))
        return (time.perf_counter() - began) * 1000

    def busy(self) -> float:
        return self.asked.busy()

    def _work(self, command: str) -> float:
        return self.said.after(lambda: self._begun("work", "Work", "--command", command))

    def _begun(self, *words: str) -> subprocess.Popen[bytes]:
        return _begun([*WINDLASS, *words], self.environment, self.source)


class Peer:
    """The peer: its server, and agents in windows of a tmux of its own, all in one folder."""

    def __init__(self, place: Path, source: Path, programs: Path) -> None:
        self.source, self.programs = source, programs
        for folder in (place, place / "bin", place / "home", place / "tmux"):
            folder.mkdir(mode=0o700)
        self.said, self.heard = Bell(place / "said"), Bell(place / "heard")
        agent = place / "bin" / "mock_cli"
        agent.write_text(SCRIPT.format(said=self.said.path, heard=self.heard.path))
        agent.chmod(0o755)
        (place / "home" / ".profile").write_text(f"PATH={place}/bin:$PATH\n")  # tmux starts login shells
        with socket.socket() as door:
            door.bind(("127.0.0.1", 0))
            self.port = int(door.getsockname()[1])
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TMUX", "CAO_"))}
        self.environment = kept | {
            "HOME": str(place / "home"),
            "CAO_HOME_DIR": str(place / "cao"),
            "CAO_API_PORT": str(self.port),
            "TMUX_TMPDIR": str(place / "tmux"),
            "PATH": f"{place}/bin:{programs}:{kept['PATH']}",
            "SHELL": "/bin/sh",
            "LC_ALL": "C.UTF-8",
        }
        self.numbers = itertools.count(1)
        self.server: subprocess.Popen[bytes] | None = None
        self.restart()
        self.start()

    def close(self) -> None:
        """End the agents with their tmux, and the server."""
        subprocess.run(["tmux", "kill-server"], env=self.environment, check=False, capture_output=True)
        self._end()

    def list(self) -> float:
        return _timed([self.programs / "cao", "session", "list"], self.environment)

    def start(self) -> float:
        name = f"s{next(self.numbers)}"
        words = ("launch", "--agents", "developer", "--provider", "mock_cli", "--headless", "--auto-approve")
        return self.said.after(lambda: self._begun(*words, "--session-name", name))

    def message(self) -> float:
        return self.heard.after(lambda: self._begun("session", "send", "--async", "cao-s1", WORD))

    def restart(self) -> float:
        """The agents live on in tmux meanwhile."""
        self._end()
        began = time.perf_counter()
        self.server = _begun([self.programs / "cao-server"], self.environment, self.source, quiet=True)
        wait_for(self._answers, within=PATIENCE / 5)
        return (time.perf_counter() - began) * 1000

    def busy(self) -> float:
        """The server, and the tmux that it has its agents in."""
        said = subprocess.run(
            ["tmux", "display-message", "-p", "#{pid}"], env=self.environment, check=True, capture_output=True
        )
        return busy(int(said.stdout)) + (busy(self.server.pid) if self.server else 0.0)

    def _answers(self) -> bool:
        try:
            with urlopen(f"http://127.0.0.1:{self.port}/sessions", timeout=PATIENCE / 5) as answer:
                return bool(answer.read())
        except OSError:
            return False

    def _end(self) -> None:
        if self.server:
            self.server.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.server.wait(20)
            self.server.kill()
            self.server.wait()

    def _begun(self, *words: str) -> subprocess.Popen[bytes]:
        return _begun([self.programs / "cao", *words], self.environment, self.source)


def installed(environment: Path | None, folder: Path) -> tuple[Path, str]:
    """Where the peer's programs are, and its version; installed anew if no environment has it. Raises CannotRun."""
    if not shutil.which("tmux"):
        raise CannotRun("the peer keeps its agents in tmux, which is not installed (`apt-get install tmux`).")
    if environment is None:
        sys.stderr.write(f"installing {PEER} …\n")
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        ran = subprocess.run([folder / "bin/pip", "install", "-q", PEER], check=False, capture_output=True)
        if ran.returncode:
            raise CannotRun(f"{PEER} could not be installed: {ran.stderr.decode().strip()[-200:]}")
    programs = (environment or folder).absolute() / "bin"
    if not (programs / "cao-server").exists():
        raise CannotRun(f"there is no {PEER} in {environment}.")
    question = f"import importlib.metadata as known; print(known.version('{PEER}'))"
    said = subprocess.run([programs / "python", "-c", question], check=True, capture_output=True, text=True)
    return programs, f"{PEER} {said.stdout.strip()}"


def _begun(
    argv: Sequence[str | Path], environment: dict[str, str], where: Path | None = None, *, quiet: bool = False
) -> subprocess.Popen[bytes]:
    errors = subprocess.DEVNULL if quiet else subprocess.PIPE
    return subprocess.Popen(argv, cwd=where, env=environment, stdout=subprocess.DEVNULL, stderr=errors)


def _timed(argv: Sequence[str | Path], environment: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run(argv, env=environment, check=True, capture_output=True)
    return (time.perf_counter() - began) * 1000
