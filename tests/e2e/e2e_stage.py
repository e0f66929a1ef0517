"""A person at a terminal: a home, a repository, and the real program started as a person starts it."""

from __future__ import annotations

import fcntl
import http.client
import json
import os
import pty
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import windlass

T = TypeVar("T")

WITHIN = 25.0
"""Seconds after which anything that a test waits for counts as missing."""
STEADY = 1.5
"""Seconds after which an open line is one that waits."""
WINDLASS = (sys.executable, "-c", "from windlass.cli.main import run; run()")
SOURCE = Path(windlass.__file__).parent.parent
PROGRAM = (
    f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(SOURCE)!r})\nfrom windlass.cli.main import run\nrun()\n"
)
PERSON = "[user]\n\tname = Test Person\n\temail = person@example.com\n[init]\n\tdefaultBranch = main\n"


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
        self.environment = _environment(folder, self.state) | variables
        self._begun: list[subprocess.Popen[bytes]] = []
        self.state.mkdir(mode=0o700, parents=True)
        # in a sandbox, agents may still use the flags by which tests tell them something
        shared = "" if "[sandbox]" in settings else f"\n[sandbox]\nwritable = ['{folder}']\n"
        (self.state / "config.toml").write_text(settings + shared)

    # ── typing ───────────────────────────────────────────────────────────────────────────────────────────────

    def wl(self, *words: str, code: int | None = 0, cwd: Path | None = None, stdin: str = "", **more: str) -> Told:
        """Type one `windlass` command, and see that it ends with this code."""
        ran = subprocess.run(
            (*self.program, *words),
            cwd=cwd or self.repo,
            env=self.environment | more,
            input=stdin.encode(),
            capture_output=True,
            timeout=2 * WITHIN,
            check=False,
        )
        told = Told(ran.returncode, ran.stdout.decode(), ran.stderr.decode())
        assert "Traceback" not in told.out + told.err, told
        assert code is None or told.code == code, told
        return told

    def raw(self, *words: str) -> bytes:
        """The very bytes that a command prints."""
        words = (*self.program, *words)
        return subprocess.run(words, cwd=self.repo, env=self.environment, stdout=-1, timeout=WITHIN, check=True).stdout

    def begin(self, *words: str, **more: str) -> subprocess.Popen[bytes]:
        """Begin a command; it is ended with the stage at the latest."""
        process = subprocess.Popen(
            (*self.program, *words),
            cwd=self.repo,
            env=self.environment | more,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._begun.append(process)
        return process

    def on_terminal(self, *words: str, columns: int = 80, **more: str) -> str:
        """What one command shows on a terminal of that width."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        environment = self.environment | {"TERM": "xterm"} | more
        process = subprocess.Popen(
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
        return list(self.ask("/queue?all=1")["items"])

    def event(self, kind: str, subject: str = "", *, since: int = 0) -> Any:
        """The first event of that kind, as soon as it is there."""
        seen = []
        with self._line(f"/events?since={since}") as answer:
            for event in _events(answer):
                seen.append(f"{event['kind']} {event['subject']}")
                if event["kind"] == kind and subject in ("", event["subject"]):
                    return event
        raise AssertionError(f"no {kind} {subject} in {WITHIN} s, but {seen}")

    def events(self) -> list[Any]:
        """Everything that has happened so far: the stream until it is quiet."""
        with self._line("/events?since=0", quiet=0.3) as answer:
            return list(_events(answer))

    @contextmanager
    def _line(self, path: str, quiet: float = WITHIN) -> Iterator[http.client.HTTPResponse]:
        connection = http.client.HTTPConnection("windlass")
        with socket.socket(socket.AF_UNIX) as door:
            door.settimeout(WITHIN)
            door.connect(str(self.state / "daemon.sock"))
            connection.sock = door
            connection.request("GET", path)
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            door.settimeout(quiet)
            yield answer
            answer.close()

    @property
    def daemon(self) -> int:
        """The daemon's pid."""
        return int((self.state / "daemon.lock").read_text())

    def worktrees(self) -> list[Path]:
        """The worktrees of all agents."""
        return sorted(self.state.glob("worktrees/*/[!.]*"))

    # ── leaving ──────────────────────────────────────────────────────────────────────────────────────────────

    def close(self) -> None:
        """Stop the daemon, and see that nothing is left: no process, no socket."""
        for process in self._begun:
            process.kill()
            process.communicate()
        if (self.state / "daemon.lock").exists():
            self.wl("daemon", "stop", cwd=self.folder, code=None)
        left = until(lambda: not inhabitants(self.folder), "everyone to leave", fails=False) or inhabitants(self.folder)
        socket_left = (self.state / "daemon.sock").exists()
        if isinstance(left, dict):
            _end(left)
        shutil.rmtree(self.folder, ignore_errors=True)
        assert left is True, f"left running: {left}"
        assert not socket_left, "the socket is still there"


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
            made.repo.mkdir()
            made.git("init", "-q", "-b", "main")
            made.commit({"README.md": "# A small project\n"}, "Begin")
        yield made
    finally:
        made.close()


def waits(process: subprocess.Popen[bytes]) -> Callable[[], bool]:
    """Looks whether a process has had the same line to the daemon for a while: short questions are answered by then."""
    seen: dict[str, float] = {}

    def look() -> bool:
        now, open_now = time.monotonic(), set()
        for path in Path(f"/proc/{process.pid}/fd").iterdir():
            with suppress(OSError):  # closed meanwhile
                open_now.add(str(path.readlink()))
        for line in open_now:
            if line.startswith("socket:"):
                seen.setdefault(line, now)
        return any(line in open_now and now - at > STEADY for line, at in seen.items())

    return look


def until(look: Callable[[], T], what: str, *, within: float = WITHIN, fails: bool = True) -> T:
    """Look again and again until there is something, and return it."""
    deadline = time.monotonic() + within
    while not (found := look()):
        if time.monotonic() > deadline:
            assert not fails, f"waited {within} s in vain for {what}"
            break
        time.sleep(0.02)
    return found


def lives(pid: int) -> bool:
    """Whether a process is there and not only waiting to be buried."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def inhabitants(folder: Path) -> dict[int, str]:
    """Processes that work in a folder, or know it by a variable of theirs."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                variables = (entry / "environ").read_bytes()
                if os.fsencode(folder) + b"/" in variables or (entry / "cwd").readlink().is_relative_to(folder):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found


def _end(processes: Mapping[int, str]) -> None:
    for pid in processes:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _environment(folder: Path, state: Path) -> dict[str, str]:
    """A person's variables: nothing of the one who runs the tests, and `windlass` on the PATH."""
    home, programs = folder / "home", folder / "bin"
    home.mkdir()
    programs.mkdir()
    (home / ".gitconfig").write_text(PERSON)
    (programs / "windlass").write_text(PROGRAM)
    (programs / "windlass").chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("WINDLASS_", "XDG_", "GIT_"))}
    return kept | {
        "HOME": str(home),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(SOURCE),
        "GIT_CONFIG_NOSYSTEM": "1",
        "WINDLASS_HOME": str(state),
        "WINDLASS_SANDBOX": os.environ.get("WINDLASS_TEST_SANDBOX", "off"),
    }


def _events(answer: http.client.HTTPResponse) -> Iterator[Any]:
    """Events as they come, until it is quiet or too late."""
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
