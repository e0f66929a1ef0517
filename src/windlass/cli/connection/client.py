"""The daemon, as seen from a command."""

from __future__ import annotations

import json
import os
import posixpath
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from windlass.cli.connection.http import Connection, Gone, dial, quote
from windlass.core.errors import KINDS, NotAllowed, NotFound, Unavailable

PATIENCE = 120.0
"""Seconds that a plain answer may take."""

Started = Callable[[str], None]
"""Starts the daemon of a home, and returns when it listens."""
Waiting = Callable[[float], None]
"""Is told every second how long something has been waited for."""


class NotRunning(Unavailable):
    """There is no daemon."""

    hint = "Any other command starts it, or run `windlass daemon start`."


class OutOfReach(NotAllowed):
    """There may be a daemon, but the system does not let us talk to it."""

    hint = "Perhaps another user's, or you are in a sandbox that lets nobody connect."


def home() -> str:
    """The folder that holds everything Windlass remembers."""
    return posixpath.abspath(posixpath.expanduser(os.environ.get("WINDLASS_HOME") or "~/.windlass"))


def here() -> str:
    """The folder the command was typed in."""
    try:
        return posixpath.abspath(".")
    except FileNotFoundError as error:
        raise NotFound("The folder you stand in is gone.", hint="Change to one that exists.") from error


def inside_a_run() -> bool:
    """Whether an agent types this."""
    return bool(os.environ.get("WINDLASS_RUN"))


def repository() -> str | None:
    """The folder the command was typed in, if that is in a repository at all."""
    return here() if top() else None


def top() -> str | None:
    """The top folder of the repository that we stand in."""
    folder = here()
    while not _is_top(folder):
        if folder == "/":
            return None
        folder = posixpath.dirname(folder)
    return folder


def _is_top(folder: str) -> bool:
    """Whether a repository is there: sandboxes of other programs leave empty folders of this name, also in /tmp."""
    git = posixpath.join(folder, ".git")
    return posixpath.isfile(git) or posixpath.exists(posixpath.join(git, "HEAD"))


class Client:
    """Asks the daemon of one home. Without `start` it never starts one."""

    def __init__(self, home: str, *, start: Started | None, waiting: Waiting, patience: float = PATIENCE) -> None:
        self.home = home
        self.start = start
        self.waiting = waiting
        self.patience = patience

    def only_if_running(self, patience: float = PATIENCE) -> Client:
        """The same, but it raises NotRunning where this one would start the daemon."""
        return Client(self.home, start=None, waiting=self.waiting, patience=patience)

    def going_on(self) -> Client:
        """The same for someone who waits already: it starts a daemon in the place of one that was killed.

        One that somebody stopped is theirs to start, and inside a run none is started.
        """
        start = None if inside_a_run() or self.start is None else self._revive
        return Client(self.home, start=start, waiting=self.waiting, patience=self.patience)

    def _revive(self, home: str) -> None:
        from windlass.cli.connection.launch import was_killed  # noqa: PLC0415 - heavy, and seldom needed

        if self.start is None or not was_killed(home):
            raise NotRunning("The daemon is not running.")
        self.start(home)

    def get(self, *path: str, **query: Any) -> Any:
        """Ask. A daemon that was just leaving is asked again."""
        try:
            return self._whole("GET", _target(path, query), b"")
        except Gone:
            return self._whole("GET", _target(path, query), b"")

    def post(self, *path: str, **body: Any) -> Any:
        """Do. What is None is left out."""
        given = {name: value for name, value in body.items() if value is not None}
        return self._whole("POST", _target(path, {}), json.dumps(given).encode())

    def stream(
        self, *path: str, deadline: float | None = None, waiting: Waiting | None = None, **query: Any
    ) -> Iterator[Any]:
        """JSON values, one per line, as they come; `waiting` is called every second without one."""
        lines = self.lines(*path, deadline=deadline, waiting=waiting, **query)
        return (json.loads(line) for line in lines if line.strip())

    def lines(
        self, *path: str, deadline: float | None = None, waiting: Waiting | None = None, **query: Any
    ) -> Iterator[bytes]:
        """Lines as they come. The request has been accepted when this returns."""
        try:
            wire, headers = self._opened(_target(path, query))
        except Gone:
            wire, headers = self._opened(_target(path, query))
        wire.deadline, wire.waiting = deadline, waiting or _silent
        return _split(wire.body(headers))

    def _opened(self, target: str) -> tuple[Connection, dict[str, str]]:
        wire = self._ask("GET", target, b"", sys.stdout.fileno() if sys.stdout else None)
        return wire, self._accepted(wire)

    def _whole(self, method: str, target: str, body: bytes) -> Any:
        wire = self._ask(method, target, body, None)
        try:
            return json.loads(b"".join(wire.body(self._accepted(wire))) or b"null")
        finally:
            self.waiting(0.0)
            wire.line.close()

    def _ask(self, method: str, target: str, body: bytes, outlet: int | None) -> Connection:
        wire = Connection(
            self._connect(), waiting=self.waiting, deadline=time.monotonic() + self.patience, outlet=outlet
        )
        wire.send(method, target, body)
        return wire

    def _accepted(self, wire: Connection) -> dict[str, str]:
        """The headers of an answer that is no error."""
        status, headers = wire.head()
        if status >= 400:
            raise _error(status, b"".join(wire.body(headers)))
        return headers

    def _connect(self) -> Any:
        try:
            return dial(self.home)
        except (FileNotFoundError, ConnectionRefusedError) as error:
            if self.start is None:
                raise NotRunning("The daemon is not running.") from error
        except PermissionError as error:
            raise OutOfReach(f"The daemon of {self.home} can't be reached from here: {error.strerror}.") from error
        except OSError as error:
            raise Unavailable(
                f"The home {self.home} can't be used: {error.strerror}.", hint="Set WINDLASS_HOME to another folder."
            ) from error
        self.start(self.home)
        return dial(self.home)


def _target(path: tuple[str, ...], query: dict[str, Any]) -> str:
    given = "&".join(f"{name}={quote(str(value))}" for name, value in query.items() if value is not None)
    return "/" + "/".join(map(quote, path)) + (f"?{given}" if given else "")


def _split(pieces: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole
    if rest:
        yield rest


def _error(status: int, body: bytes) -> Exception:
    """What went wrong, in the daemon's own words."""
    try:
        said = json.loads(body)["error"]
        return KINDS[said["kind"]](said["message"], hint=said.get("hint") or "")
    except (ValueError, KeyError, TypeError):
        return Unavailable(
            f"The daemon answered {status} and did not say why.",
            hint="If Windlass was just updated, run `windlass daemon stop`; else see `windlass daemon logs`.",
        )


def _silent(_seconds: float) -> None:
    """Streams may be quiet for long: that is no news."""
