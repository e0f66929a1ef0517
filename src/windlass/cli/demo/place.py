"""The demo's throw-away folder, and the process that removes it, however the demo ends."""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from windlass.cli.connection.client import Client
from windlass.cli.connection.http import Waiting
from windlass.cli.output import tell, waiting_note
from windlass.core.errors import Unavailable, WindlassError

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LEAVING_SECONDS = 8.0
_ENDING_SECONDS = 3.0


class DemoPlace:
    """The folder of one demo: a repository, a home for its own daemon, and files that its agents wait for."""

    def __init__(self, folder: Path, hold: DeferredSignals) -> None:
        self.folder = folder
        self.repo = folder / "repo"
        self.home = folder / "home"
        self.signs = folder / "signs"
        self.hold = hold
        self.clean = True
        """Whether the cleanup removed everything that it should."""

    def make_folders(self) -> None:
        for folder in (self.repo, self.home, self.signs):
            folder.mkdir(mode=0o700)
        signs = str(self.signs).replace("\\", "\\\\").replace('"', '\\"')  # quoted as TOML wants it
        config = f'[sandbox]\nreadable = ["{signs}"]\n'  # agents in a sandbox must see the signs
        (self.home / "config.toml").write_text(config, encoding="utf-8")

    def client(self, waiting: Waiting) -> Client:
        """A client that starts the demo's own daemon; an interrupt waits until the daemon runs."""

        def start(home: str) -> None:
            from windlass.cli.connection import launch  # noqa: PLC0415

            with self.hold:
                launch.start(home, waiting)

        return Client(str(self.home), start=start, waiting=waiting)

    def put_sign(self, name: str) -> None:
        """Make the file that agents wait for."""
        (self.signs / name).touch()


class DeferredSignals:
    """Turns signals into KeyboardInterrupt, but later while something is half done."""

    def __init__(self) -> None:
        self.holding = True
        self.asked = False

    def __call__(self, _number: int, _frame: Any) -> None:
        self.asked = True
        self._leave_if_asked()

    def __enter__(self) -> None:
        self.holding = True

    def __exit__(self, *_error: object) -> None:
        self.release()

    def release(self) -> None:
        self.holding = False
        self._leave_if_asked()

    def _leave_if_asked(self) -> None:
        if self.asked and not self.holding:
            self.asked = False
            raise KeyboardInterrupt


@contextmanager
def throwaway(*, keep: bool) -> Iterator[DemoPlace]:
    """A folder that is removed afterwards, with every process in it. `keep` keeps the folder, but no process."""
    hold = DeferredSignals()
    before = {number: signal.signal(number, hold) for number in _SIGNALS}
    try:
        place = DemoPlace(_make_folder(), hold)
        cleanup = CleanupProcess(place, keep=keep)
        try:
            hold.release()
            place.make_folders()
            yield place
        except BaseException:
            if keep:
                tell(f"windlass: the demo did not end as it should; it is kept in {place.folder}")
            raise
        finally:
            hold.holding = True
            place.clean = cleanup.finish()
            if not place.clean:
                tell(f"windlass: {place.folder} could not be cleaned up. Look what holds it, then remove it.")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _make_folder() -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix="windlass-demo-")).resolve()
    except OSError as error:
        raise Unavailable(
            f"There is no room for a throw-away folder: {error.strerror}.",
            hint="Set TMPDIR to a folder that you may write to.",
        ) from error


class CleanupProcess:
    """A process that cleans up when we end, even if we are killed."""

    def __init__(self, place: DemoPlace, *, keep: bool) -> None:
        self.place = place
        waits, self.ours = _pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._wait_and_clean(waits, keep=keep)
        os.close(waits)

    def finish(self) -> bool:
        """Let it clean up now, and return whether it could."""
        os.close(self.ours)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]) == 0

    def _wait_and_clean(self, waits: int, *, keep: bool) -> None:
        """In the new process: ignore the terminal's signals, and wait until the other end of the pipe is closed."""
        clean = False
        try:
            os.setsid()
            for number in _SIGNALS:
                signal.signal(number, signal.SIG_IGN)
            nothing = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):  # the reader of our output must not wait for this process
                os.dup2(nothing, stream)
            os.chdir("/")
            os.close(self.ours)
            os.read(waits, 1)
            clean = _end_all(self.place, keep=keep) and (keep or _remove(self.place.folder))
        finally:
            os._exit(0 if clean else 1)


def _pipe() -> tuple[int, int]:
    """A pipe whose numbers are above the standard streams, of which some may be closed."""
    low = os.pipe()
    waits, ours = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3) for end in low)
    for end in low:
        os.close(end)
    return waits, ours


def _end_all(place: DemoPlace, *, keep: bool) -> bool:
    """End every process in the folder; if the folder is kept, in good order first."""
    if keep:
        with suppress(WindlassError, OSError):
            _stop_daemon(place.client(waiting_note("")).only_if_running(patience=_LEAVING_SECONDS))
    return _soon(lambda: not _kill_all(place.folder))


def _stop_daemon(daemon: Client) -> None:
    """Stop the agents, then the daemon, and wait until it has ended."""
    leaving = select.poll()
    leaving.register(os.pidfd_open(daemon.get("status")["pid"]), select.POLLIN)
    daemon.post("stop")
    daemon.post("shutdown")
    leaving.poll(_LEAVING_SECONDS * 1000)


def _kill_all(folder: Path) -> bool:
    """Kill the processes whose home or working folder is in the demo's folder; False if there are none."""
    ours = os.fsencode(folder)
    found = [path for path in Path("/proc").iterdir() if path.name.isdigit() and _lives_there(path, ours)]
    for process in found:
        with suppress(ProcessLookupError):
            os.kill(int(process.name), signal.SIGKILL)
    return bool(found)


def _lives_there(process: Path, folder: bytes) -> bool:
    try:
        variables = (process / "environ").read_bytes()
        where = os.fsencode((process / "cwd").readlink())
    except OSError:  # the process has ended, or is another user's
        return False
    return b"WINDLASS_HOME=" + folder + b"/" in variables or where.startswith(folder + b"/")


def _remove(folder: Path) -> bool:
    """Remove the folder, again if something was written meanwhile."""

    def gone() -> bool:
        shutil.rmtree(folder, ignore_errors=True)
        return not folder.exists()

    return _soon(gone)


def _soon(condition: Callable[[], bool]) -> bool:
    """Whether a condition comes true within a few seconds."""
    deadline = time.monotonic() + _ENDING_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
