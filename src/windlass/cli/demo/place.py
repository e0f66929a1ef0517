"""The demo's throw-away folder, and the guard that leaves nothing of it behind, however the demo ends."""

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
from windlass.cli.output import tell, waiting_note
from windlass.core.errors import Unavailable, WindlassError

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LEAVING_SECONDS = 8.0
_ENDING_SECONDS = 3.0


class DemoPlace:
    """Where one demo happens: a repository, a home for its own daemon, and signs that its agents wait for."""

    def __init__(self, folder: Path, hold: DeferredSignals) -> None:
        self.folder = folder
        self.repo = folder / "repo"
        self.home = folder / "home"
        self.signs = folder / "signs"
        self.hold = hold
        self.clean = True
        """Whether all that should be gone is gone, once it is over."""

    def furnish(self) -> None:
        for each in (self.repo, self.home, self.signs):
            each.mkdir(mode=0o700)
        signs = str(self.signs).replace("\\", "\\\\").replace('"', '\\"')  # as TOML writes a text
        seen = f'[sandbox]\nreadable = ["{signs}"]\n'  # where agents are kept in a sandbox, they still see these
        (self.home / "config.toml").write_text(seen, encoding="utf-8")

    def client(self, waiting: Callable[[float], None]) -> Client:
        """Speaks to the daemon of this place, and starts it first; an interrupt waits until it has a name."""

        def start(home: str) -> None:
            from windlass.cli.connection import launch  # noqa: PLC0415

            with self.hold:
                launch.start(home, waiting)

        return Client(str(self.home), start=start, waiting=waiting)

    def put_sign(self, name: str) -> None:
        """Agents that wait for this go on."""
        (self.signs / name).touch()


class DeferredSignals:
    """Turns signals that ask us to leave into an interrupt, but not while something is half done."""

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
    """A place that is gone afterwards, with every process in it. `keep` leaves the folder, but nothing that runs."""
    hold = DeferredSignals()
    before = {each: signal.signal(each, hold) for each in _SIGNALS}
    try:
        place = DemoPlace(_make_folder(), hold)
        guard = Guard(place, keep=keep)
        try:
            hold.release()
            place.furnish()
            yield place
        except BaseException:
            if keep:
                tell(f"windlass: the demo did not end as it should; it is kept in {place.folder}")
            raise
        finally:
            hold.holding = True
            place.clean = guard.relieve()
            if not place.clean:
                tell(f"windlass: {place.folder} could not be cleaned up. Look what holds it, then remove it.")
    finally:
        for each, usual in before.items():
            signal.signal(each, usual)


def _make_folder() -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix="windlass-demo-")).resolve()
    except OSError as error:
        raise Unavailable(
            f"There is no room for a throw-away folder: {error.strerror}.",
            hint="Set TMPDIR to a folder that you may write to.",
        ) from error


class Guard:
    """A process of its own that cleans the place when we have gone: also when we were killed."""

    def __init__(self, place: DemoPlace, *, keep: bool) -> None:
        self.place = place
        waits, self.ours = _pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._stand(waits, keep=keep)
        os.close(waits)

    def relieve(self) -> bool:
        """Let it clean now, wait until it has, and say whether it could."""
        os.close(self.ours)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]) == 0

    def _stand(self, waits: int, *, keep: bool) -> None:
        """In the new process: out of reach of the terminal's signals until nobody holds the other end of the pipe."""
        clean = False
        try:
            os.setsid()
            for each in _SIGNALS:
                signal.signal(each, signal.SIG_IGN)
            _let_go_of_streams()
            os.close(self.ours)
            os.read(waits, 1)
            clean = _end_all(self.place, keep=keep) and (keep or _remove(self.place.folder))
        finally:
            os._exit(0 if clean else 1)


def _pipe() -> tuple[int, int]:
    """Both ends out of the way of the standard streams, of which some may be closed."""
    low = os.pipe()
    waits, ours = (fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 3) for each in low)
    for each in low:
        os.close(each)
    return waits, ours


def _let_go_of_streams() -> None:
    """Whoever reads our output must not wait for the guard."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for each in (0, 1, 2):
        os.dup2(nothing, each)
    os.chdir("/")


def _end_all(place: DemoPlace, *, keep: bool) -> bool:
    """End every process there. Only in a folder that is kept does it matter how."""
    if keep:
        with suppress(WindlassError, OSError):
            _dismiss(place.client(waiting_note("")).only_if_running(patience=_LEAVING_SECONDS))
    return _soon(lambda: not _kill(_inhabitants(place.folder)))


def _dismiss(daemon: Client) -> None:
    """Let the daemon stop the agents and leave in good order."""
    leaving = select.poll()
    leaving.register(os.pidfd_open(daemon.get("status")["pid"]), select.POLLIN)
    daemon.post("stop")
    daemon.post("shutdown")
    leaving.poll(_LEAVING_SECONDS * 1000)


def _kill(found: list[int]) -> list[int]:
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return found


def _inhabitants(folder: Path) -> list[int]:
    """Processes whose home or working folder is in the place: only the demo can have started them."""
    ours = os.fsencode(folder)
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and _lives_there(path, ours)]


def _lives_there(process: Path, folder: bytes) -> bool:
    try:
        variables = (process / "environ").read_bytes()
        where = os.fsencode((process / "cwd").readlink())
    except OSError:  # it has gone, or is someone else's
        return False
    return b"WINDLASS_HOME=" + folder + b"/" in variables or where.startswith(folder + b"/")


def _remove(folder: Path) -> bool:
    """Remove the folder; what was written while it was removed is removed with the next try."""

    def gone() -> bool:
        shutil.rmtree(folder, ignore_errors=True)
        return not folder.exists()

    return _soon(gone)


def _soon(condition: Callable[[], bool]) -> bool:
    """Whether it comes true in a little while."""
    deadline = time.monotonic() + _ENDING_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
