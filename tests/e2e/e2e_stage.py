"""A person at a terminal: a home, a repository, and the real program started as a person starts it."""

from __future__ import annotations

import copy
import fcntl
import http.client
import json
import os
import pty
import shutil
import socket
import sqlite3
import struct
import subprocess
import tempfile
import termios
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from person_environment import person_environment
from process_table import end, inhabitants

import forked
import patience
from forked import WINDLASS
from patience import until
from repositories import new_repository

T = TypeVar("T")

WITHIN = patience.seconds(25)
"""Seconds after which anything that a test waits for counts as missing."""


@dataclass(frozen=True, slots=True)
class Told:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def value(self) -> Any:
        """What it said with `--json`."""
        return json.loads(self.out)


class Stage:
    """One person's machine below a short folder: `home` is theirs, `wl` is Windlass's, `repo` their repository."""

    def __init__(
        self,
        folder: Path,
        *,
        settings: str,
        place: str = "repo",
        state: str = "wl",
        before: Sequence[str] = (),
        **variables: str,
    ) -> None:
        self.folder = folder
        self.program = (*before, *WINDLASS)
        self.state = folder / state
        self.repo = folder / place
        self.environment = person_environment(folder, self.state) | variables
        self.since = 0
        self._path = ""
        self._begun: list[subprocess.Popen[bytes]] = []
        self._ends: list[threading.Timer] = []
        self.state.mkdir(mode=0o700, parents=True)
        # in a sandbox, agents may still use the flags by which tests tell them something
        shared = "" if "[sandbox]" in settings else f"\n[sandbox]\nwritable = ['{folder}']\n"
        (self.state / "config.toml").write_text(settings + shared)

    # ── typing ───────────────────────────────────────────────────────────────────────────────────────────────

    def wl(self, *words: str, code: int | None = 0, cwd: Path | None = None, stdin: str = "", **more: str) -> Told:
        """Type one `windlass` command, and see that it ends with this code."""
        ran = forked.run(
            (*self.program, *words),
            cwd=cwd or self.repo,
            env=self.environment | more,
            given=stdin.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=2 * WITHIN,
        )
        told = Told(ran.returncode, ran.stdout.decode(), ran.stderr.decode())
        assert "Traceback" not in told.out + told.err, told
        assert code is None or told.code == code, told
        return told

    def raw(self, *words: str) -> bytes:
        """The very bytes that a command prints."""
        words = (*self.program, *words)
        ran = forked.run(words, cwd=self.repo, env=self.environment, stdout=subprocess.PIPE, timeout=WITHIN)
        ran.check_returncode()
        return bytes(ran.stdout)

    def begin(self, *words: str, **more: str) -> subprocess.Popen[bytes]:
        """Begin a command; it is ended with the stage at the latest."""
        process = forked.begin(
            (*self.program, *words),
            cwd=self.repo,
            env=self.environment | more,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._begun.append(process)
        self._ends.append(threading.Timer(8 * WITHIN, process.kill))  # whoever reads along does not wait for ever
        self._ends[-1].start()
        return process

    def on_terminal(self, *words: str, columns: int = 80, **more: str) -> str:
        """What one command shows on a terminal of that width."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        environment = self.environment | {"TERM": "xterm"} | more
        process = forked.begin(
            (*self.program, *words), cwd=self.repo, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        shown = _read_all(ours)
        assert process.wait(WITHIN) == 0, shown
        return shown.replace("\r\n", "\n")

    def git(self, *words: str, cwd: Path | None = None) -> str:
        """Git as the person types it."""
        command = ("git", *words)
        ran = subprocess.run(
            command, cwd=cwd or self.repo, env=self.environment, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, f"{command}: {ran.stderr}"
        return ran.stdout.rstrip("\n")

    def commit(self, files: Mapping[str, str], message: str = "Change") -> str:
        """The person commits these files in their checkout."""
        for name, text in files.items():
            (self.repo / name).parent.mkdir(parents=True, exist_ok=True)
            (self.repo / name).write_text(text)
        self.git("add", "--", *files)
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")

    # ── giving work ──────────────────────────────────────────────────────────────────────────────────────────

    def work(self, title: str, command: str, *more: str) -> str:
        """Give work to a command; returns the agent's name."""
        return str(self.wl("work", title, "--command", command, "--json", *more).value["agent"])

    def play(self, title: str, script: str, *more: str) -> str:
        """Give work to a scripted agent; returns its name."""
        return str(self.wl("work", title, "--script", self.script(script), "--json", *more).value["agent"])

    def land(self, title: str, command: str) -> Any:
        """Give work to a command and see it land; returns the last that is known of it."""
        return self.wl("work", title, "--command", command, "--wait", "--json", "--timeout", f"{WITHIN}").value

    def land_script(self, title: str, script: str) -> Any:
        """Give work to a scripted agent and see it land."""
        script = self.script(script)
        return self.wl("work", title, "--script", script, "--wait", "--json", "--timeout", f"{WITHIN}").value

    def script(self, text: str) -> str:
        """A file with a script in it."""
        number, name = tempfile.mkstemp(".yaml", dir=self.folder)
        os.write(number, text.encode())
        os.close(number)
        return name

    def flag(self, name: str) -> Path:
        """A file by which a test and an agent tell each other something."""
        return self.folder / name

    def waits_for(self, flag: Path) -> str:
        """A shell command that ends when the flag is there."""
        return f"until [ -e '{flag}' ]; do sleep 0.02; done"

    # ── looking ──────────────────────────────────────────────────────────────────────────────────────────────

    def ask(self, path: str) -> Any:
        """What the running daemon answers, as a person asks it."""
        with self._line(path) as answer:
            return json.loads(answer.read())

    def agent(self, name: str) -> Any:
        return self.ask(f"/agents/{name}")

    def pid(self, name: str) -> int:
        """The process of an agent's first run, as soon as it is known."""
        return int(until(lambda: [each["pid"] for each in self.agent(name)["runs"] if each["pid"]], "its process")[0])

    def queue(self) -> list[Any]:
        """Every change there ever was."""
        return list(self.ask(f"/queue?all=1{self._path}")["items"])

    def change(self, number: int) -> str:
        """The id of the first change, or of a later one."""
        return sorted((str(change["id"]) for change in self.queue()), key=lambda name: int(name[1:]))[number - 1]

    def agents(self) -> list[Any]:
        """Every agent there ever was."""
        return list(self.ask(f"/agents?all=1{self._path}")["items"])

    def event(self, kind: str, subject: str = "", *, since: int | None = None) -> Any:
        """The first event of that kind, as soon as it is there."""
        seen = []
        with self._line(f"/events?since={self.since if since is None else since}") as answer:
            for event in _events(answer):
                seen.append(f"{event['kind']} {event['subject']}")
                if event["kind"] == kind and subject in ("", event["subject"]):
                    return event
        raise AssertionError(f"no {kind} {subject} in {WITHIN} s, but {seen}")

    def events(self) -> list[Any]:
        """Everything that has happened so far: the stream up to the last event in the store."""
        last, found = self._last_event(), []
        if last == self.since:
            return []
        with self._line(f"/events?since={self.since}") as answer:
            for event in _events(answer):
                found.append(event)
                if event["seq"] >= last:
                    break
        return found

    @contextmanager
    def _line(self, path: str) -> Iterator[http.client.HTTPResponse]:
        connection = http.client.HTTPConnection("windlass")
        with socket.socket(socket.AF_UNIX) as door:
            door.settimeout(WITHIN)
            door.connect(str(self.state / "daemon.sock"))
            connection.sock = door
            connection.request("GET", path)
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            yield answer
            answer.close()

    @property
    def daemon(self) -> int:
        """The daemon's pid."""
        return until(self._locked_by, "a daemon")

    def _locked_by(self) -> int:
        """The pid in the lock; 0 while there is none, or it is just being written."""
        with suppress(OSError):
            return int((self.state / "daemon.lock").read_text().strip() or 0)
        return 0

    def worktrees(self) -> list[Path]:
        """The worktrees of all agents."""
        return sorted(self.state.glob("worktrees/*/[!.]*"))

    # ── sharing ──────────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def room(self) -> Iterator[Stage]:
        """The same home and daemon for one test of many, with a repository and flags of its own, and no past."""
        made = copy.copy(self)
        made.folder = Path(tempfile.mkdtemp(dir=self.folder, prefix=""))
        made.repo = made.folder / "repo"
        made.environment = dict(self.environment)
        made._path = f"&path={quote(str(made.repo))}"
        made.since = made._last_event()
        made._begun, made._ends = [], []
        made.begin_repository()
        try:
            yield made
        finally:
            made._leave_room()

    def begin_repository(self) -> None:
        """A repository of one commit, on main."""
        new_repository(self.repo)

    def set_checks(self, command: str) -> None:
        """The check of this repository alone, in a file that git does not see."""
        (self.repo / ".git/info/exclude").write_text("/.windlass/\n")
        (self.repo / ".windlass").mkdir(exist_ok=True)
        (self.repo / ".windlass/config.toml").write_text(f"[checks]\ncommand = '''{command}'''\n")

    def _last_event(self) -> int:
        if not (self.state / "windlass.db").exists():
            return 0
        with closing(sqlite3.connect(self.state / "windlass.db", timeout=WITHIN)) as store:
            return int(store.execute("SELECT seq FROM tip").fetchone()[0])

    def _leave_room(self) -> None:
        """End what was begun, and wait for the agents: the next test has nobody at work beside it."""
        self._end_commands()
        if (self.state / "daemon.sock").exists():
            until(lambda: "running" not in {agent["status"] for agent in self.agents()}, "its agents to end")
        shutil.rmtree(self.folder, ignore_errors=True)

    # ── leaving ──────────────────────────────────────────────────────────────────────────────────────────────

    def close(self) -> None:
        """Stop the daemon, and see that nothing is left: no process, no socket."""
        self._end_commands()
        if (self.state / "daemon.lock").exists():
            self.wl("daemon", "stop", cwd=self.folder, code=None)
        left = until(lambda: not inhabitants(self.folder), "everyone to leave", fails=False) or inhabitants(self.folder)
        socket_left = (self.state / "daemon.sock").exists()
        if isinstance(left, dict):
            end(left)
        shutil.rmtree(self.folder, ignore_errors=True)
        assert left is True, f"left running: {left}"
        assert not socket_left, "the socket is still there"

    def _end_commands(self) -> None:
        for timer in self._ends:
            timer.cancel()
        for process in self._begun:
            process.kill()
            process.communicate()


@contextmanager
def stage(
    *, checks: str = "true", settings: str = "", begun: bool = True, before: Sequence[str] = (), **more: str
) -> Iterator[Stage]:
    """A stage with a repository of one commit (unless it is to be begun by the test), removed with all in it.

    Words may go before every `windlass`, such as `nsenter …`.
    """
    folder = Path(tempfile.mkdtemp(dir=os.environ["WINDLASS_TEST_ROOT"], prefix=""))
    written = f"[checks]\ncommand = '''{checks}'''\n{settings}" if checks else settings
    made = Stage(folder, settings=written, before=before, **more)
    try:
        if begun:
            made.begin_repository()
        yield made
    finally:
        made.close()


def _events(answer: http.client.HTTPResponse) -> Iterator[Any]:
    """Events as they come, until it is too late."""
    deadline = time.monotonic() + WITHIN
    with suppress(TimeoutError):
        for line in answer:
            if line.startswith(b"data: "):
                yield json.loads(line[6:])
            if time.monotonic() > deadline:
                return


def _read_all(terminal: int) -> str:
    shown = b""
    with suppress(OSError):  # how Linux says that the other side has closed
        while piece := os.read(terminal, 65536):
            shown += piece
    os.close(terminal)
    return shown.decode()


def lines(*words: str) -> str:
    """Shell commands, each of which must succeed."""
    return "set -e; " + "; ".join(words)


def adds(name: str, text: str = "new", message: str = "") -> str:
    """A shell command that commits a file."""
    return lines(f"printf '%s\\n' '{text}' > '{name}'", "git add -A", f"git commit -q -m '{message or f'Add {name}'}'")


def exact(keys: str, value: Mapping[str, Any] | Sequence[str]) -> bool:
    """Whether an object has exactly these keys, in this order."""
    return list(value) == keys.split()
