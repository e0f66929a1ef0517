"""Start the daemon, detached, and wait until it listens."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from windlass.cli.connection.frozen import peer, process
from windlass.cli.connection.http import Waiting, dial
from windlass.core.errors import TimedOut, Unavailable

WITHIN = 20.0
"""Seconds in which a daemon must listen."""
LOST = 4
"""The exit code of a daemon that found another one running (conflict)."""
_AGAIN = 1.0
_LAST_LINES = 5


def start(home: str, waiting: Waiting) -> None:
    """Start the daemon of a home; returns when it listens, whoever started it."""
    refuse_inside_a_run()
    log = _prepare(home)
    before = log.stat().st_size
    try:
        _start(home, log, waiting)
    except Unavailable as error:
        error.hint = _last_lines(log, before) or error.hint
        raise


def _start(home: str, log: Path, waiting: Waiting) -> None:
    began = tried = time.monotonic()
    process = _spawn(home, log)
    while not listens(home):
        now = time.monotonic()
        if process.poll() not in (None, LOST):
            raise Unavailable(f"The daemon did not start (exit code {process.returncode}).", hint=_SEE_LOG)
        if now - began > WITHIN:
            raise TimedOut(f"The daemon does not listen after {WITHIN:.0f} s.", hint=_SEE_LOG)
        if process.returncode == LOST and now - tried > _AGAIN:  # the other one may have been leaving
            tried, process = now, _spawn(home, log)
        waiting(now - began)
        time.sleep(0.01)
    waiting(0.0)
    if _holder(home) not in (None, process.pid):
        process.terminate()  # another was first; ours must not take over later, when someone has stopped that one


def _spawn(home: str, log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "windlass.daemon"],  # -P: never import from the folder we stand in
            cwd="/",
            env=os.environ | {"WINDLASS_HOME": home},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def restore(home: str) -> dict[str, Any]:
    """Put the copy of a home's store back, by the daemon's own program. Raises Unavailable if that is refused."""
    refuse_inside_a_run()
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "windlass.daemon", "--restore"],
        cwd="/",
        env=os.environ | {"WINDLASS_HOME": home},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if ended.returncode:
        words, _, hint = ended.stderr.strip().partition("\n")
        stop = "Stop the daemon first: `windlass daemon stop`." if ended.returncode == LOST else ""
        raise Unavailable(words.removeprefix("windlass: ") or "The copy was not put back.", hint=hint.strip() or stop)
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def replace_us(home: str) -> NoReturn:
    """Become the daemon, in this terminal."""
    refuse_inside_a_run()
    _prepare(home)
    environment = os.environ | {"WINDLASS_HOME": home}
    os.execve(sys.executable, [sys.executable, "-P", "-m", "windlass.daemon", "--foreground"], environment)


def refuse_inside_a_run() -> None:
    """A daemon started by an agent would die with the agent's process tree."""
    if os.environ.get("WINDLASS_RUN"):
        raise Unavailable(
            "The daemon is not running, and a command inside a run does not start it.",
            hint="Go on working; your signal file ($WINDLASS_SIGNAL) is read when it is back.",
        )


def _prepare(home: str) -> Path:
    """Make the home and its log. Raises Unavailable if that fails."""
    log = Path(home, "daemon.log")
    try:
        Path(home).mkdir(mode=0o700, parents=True, exist_ok=True)
        log.touch(mode=0o600)
    except OSError as error:
        raise Unavailable(
            f"The home {home} can't be written: {error.strerror}.",
            hint="Set WINDLASS_HOME to a folder that you may write to.",
        ) from error
    return log


def listens(home: str) -> bool:
    """Whether a daemon takes connections."""
    try:
        dial(home).close()
    except OSError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class ListeningProcess:
    """The process that takes connections; nobody, if none does or it can't be seen from here."""

    pid: int = 0
    descriptor: int = -1
    """A pidfd: whoever has the number later is not meant."""

    def signal(self, *numbers: int) -> None:
        """Send it signals, unless it has ended."""
        with suppress(ProcessLookupError):
            for number in numbers:
                signal.pidfd_send_signal(self.descriptor, number)

    def has_ended(self, within: float) -> bool:
        """Whether it has ended, or does so in these seconds."""
        return not self.pid or bool(select.select((self.descriptor,), (), (), within)[0])


@contextmanager
def listener(home: str) -> Iterator[ListeningProcess]:
    """Pin the process that takes connections now."""
    found = ListeningProcess()
    with suppress(OSError):  # nobody listens, or it has just ended
        connected = dial(home)
        try:
            pid = peer(connected)
            found = ListeningProcess(pid, os.pidfd_open(pid)) if pid else found
        finally:
            connected.close()
    try:
        yield found
    finally:
        if found.pid:
            os.close(found.descriptor)


def was_killed(home: str) -> bool:
    """Whether the last daemon was killed: one that stops in order removes its socket before it ends."""
    pid = _holder(home)
    if pid is None or _lives(pid):
        return False
    try:
        dial(home).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False  # the next one is here already


def _lives(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    return process(pid)[0] not in ("", "Z")


def _holder(home: str) -> int | None:
    """The pid in the home's lock file, if there is one."""
    try:
        return int(Path(home, "daemon.lock").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _last_lines(log: Path, began: int) -> str:
    """The last lines of the daemon's log since it was started."""
    with log.open("rb") as file:
        file.seek(began)
        lines = file.read().decode("utf-8", "replace").splitlines()[-_LAST_LINES:]
    return "\n".join([f"Last lines of {log}:", *(f"  {line}" for line in lines)]) if lines else ""


_SEE_LOG = "Run `windlass daemon logs` to see why."
