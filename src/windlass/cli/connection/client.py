"""The client: requests from a command to the daemon."""

from __future__ import annotations

import json
import os
import posixpath
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from windlass.cli.connection.http import Connection, Frozen, Gone, Notice, Waiting, dial, quote
from windlass.core.errors import KINDS, NotAllowed, NotFound, Unavailable

PATIENCE = 120.0
"""Seconds that a plain answer may take."""

Started = Callable[[str], None]
"""Starts the daemon of a home, and returns when it listens."""


class NotRunning(Unavailable):
    """There is no daemon."""

    hint = "Any other command starts it, or run `windlass daemon start`."


class OutOfReach(NotAllowed):
    """The system does not let us connect to the daemon's socket."""

    hint = "Perhaps another user's, or you are in a sandbox that lets nobody connect."


def home() -> str:
    """The folder that holds everything Windlass stores."""
    return posixpath.abspath(posixpath.expanduser(os.environ.get("WINDLASS_HOME") or "~/.windlass"))


def here() -> str:
    """The folder the command was typed in."""
    try:
        return posixpath.abspath(".")
    except FileNotFoundError as error:
        raise NotFound("The folder you stand in is gone.", hint="Change to one that exists.") from error


def inside_a_run() -> bool:
    """Whether an agent runs this command."""
    return bool(os.environ.get("WINDLASS_RUN"))


def repository() -> str | None:
    """The folder the command was typed in; None outside every repository."""
    return here() if top() else None


def top() -> str | None:
    """The top folder of the repository that the current folder is in."""
    folder = here()
    while True:
        git = posixpath.join(folder, ".git")
        if posixpath.isfile(git) or posixpath.exists(
            posixpath.join(git, "HEAD")
        ):  # other programs leave empty .git folders
            return folder
        if folder == "/":
            return None
        folder = posixpath.dirname(folder)


def frozen_notice(home: str) -> Notice:
    """Says once to whoever waits for the daemon of a home that it answers nobody."""
    watches: list[Notice] = []

    def notice(waited: float) -> Frozen | None:
        if not watches:
            from windlass.cli.connection.frozen import FrozenWatch  # noqa: PLC0415 - a quick answer needs none of it

            watches.append(FrozenWatch(home).look)
        return watches[0](waited)

    return notice


class Client:
    """Makes requests to the daemon of one home. Without `start` it never starts one."""

    def __init__(self, home: str, *, start: Started | None, waiting: Waiting, patience: float = PATIENCE) -> None:
        self.home = home
        self.start = start
        self.waiting = waiting
        self.patience = patience

    def only_if_running(self, patience: float = PATIENCE) -> Client:
        """A client that raises NotRunning instead of starting the daemon."""
        return Client(self.home, start=None, waiting=self.waiting, patience=patience)

    def going_on(self) -> Client:
        """A client for a command that waits already: it restarts a daemon that was killed.

        It does not restart one that somebody stopped, and inside a run it starts none.
        """
        start = None if inside_a_run() or self.start is None else self._revive
        return Client(self.home, start=start, waiting=self.waiting, patience=self.patience)

    def _revive(self, home: str) -> None:
        from windlass.cli.connection.launch import was_killed  # noqa: PLC0415 - heavy, and seldom needed

        if self.start is None or not was_killed(home):
            raise NotRunning("The daemon is not running.")
        self.start(home)

    def get(self, *path: str, **query: Any) -> Any:
        """GET. If the daemon leaves before it answers, the next one is asked."""
        try:
            return self._whole("GET", _target(path, query), b"")
        except Gone:
            return self._whole("GET", _target(path, query), b"")

    def post(self, *path: str, **body: Any) -> Any:
        """POST, once. Arguments that are None are left out."""
        given = {name: value for name, value in body.items() if value is not None}
        return self._whole("POST", _target(path, {}), json.dumps(given).encode())

    def stream(
        self, *path: str, deadline: float | None = None, waiting: Waiting | None = None, **query: Any
    ) -> Iterator[Any]:
        """Yield JSON values, one per line, as they arrive; `waiting` is called every second without one."""
        lines = self.lines(*path, deadline=deadline, waiting=waiting, **query)
        return (json.loads(line) for line in lines if line.strip())

    def lines(
        self, *path: str, deadline: float | None = None, waiting: Waiting | None = None, **query: Any
    ) -> Iterator[bytes]:
        """Yield lines as they arrive. The daemon has accepted the request when this returns."""
        try:
            connection, headers = self._opened(_target(path, query))
        except Gone:
            connection, headers = self._opened(_target(path, query))
        connection.deadline, connection.waiting = deadline, waiting or (lambda _seconds: None)
        return _split(connection.body(headers))

    def _opened(self, target: str) -> tuple[Connection, dict[str, str]]:
        connection = self._ask("GET", target, b"", sys.stdout.fileno() if sys.stdout else None)
        return connection, self._accepted(connection)

    def _whole(self, method: str, target: str, body: bytes) -> Any:
        connection = self._ask(method, target, body, None)
        try:
            return json.loads(b"".join(connection.body(self._accepted(connection))) or b"null")
        finally:
            self.waiting(0.0)
            connection.socket.close()

    def _ask(self, method: str, target: str, body: bytes, output: int | None) -> Connection:
        deadline = time.monotonic() + self.patience
        notice = frozen_notice(self.home)
        connection = Connection(self._connect(), notice, waiting=self.waiting, deadline=deadline, output=output)
        connection.send(method, target, body)
        return connection

    def _accepted(self, connection: Connection) -> dict[str, str]:
        """The headers of the answer. Raises the daemon's error if that is the answer."""
        status, headers = connection.head()
        if status >= 400:
            raise _error(status, b"".join(connection.body(headers)))
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
    """The error that the daemon answered with."""
    try:
        said = json.loads(body)["error"]
        return KINDS[said["kind"]](said["message"], hint=said.get("hint") or "")
    except (ValueError, KeyError, TypeError):
        return Unavailable(
            f"The daemon answered {status} and did not say why.",
            hint="If Windlass was just updated, run `windlass daemon stop`; else see `windlass daemon logs`.",
        )
