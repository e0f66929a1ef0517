"""HTTP over a Unix socket by hand: importing the standard library's client would double the time of a command."""

from __future__ import annotations

import os
import select
import sys
import time
from _socket import (
    AF_UNIX,
    MSG_DONTWAIT,
    SOCK_STREAM,
    socket,
)  # `socket` itself builds enums that take longer than our request
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from windlass.core.errors import TimedOut, Unavailable

LONGEST_PATH = 100
"""Bytes of a socket's path that every system takes."""
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_GONE = select.POLLERR | select.POLLHUP

Waiting = Callable[[float], None]
"""Called every second with the seconds waited so far."""


class Frozen(NamedTuple):
    """What whoever waits for a daemon that answers nobody is told: what is wrong, and what to do."""

    said: str
    advice: str
    within: float
    """Seconds that it gets to answer after all."""


Notice = Callable[[float], Frozen | None]
"""The same; what it returns is told to whoever waits."""


class Gone(Unavailable):
    """The daemon closed the connection before its answer was complete."""


def dial(home: str) -> socket:
    """Connect to the daemon of a home, however long the home's path is."""
    connected = socket(AF_UNIX, SOCK_STREAM)
    try:
        if len(os.fsencode(f"{home}/daemon.sock")) <= LONGEST_PATH:
            connected.connect(f"{home}/daemon.sock")
            return connected
        folder = os.open(home, os.O_PATH | os.O_DIRECTORY)
        try:
            connected.connect(f"/proc/self/fd/{folder}/daemon.sock")
        finally:
            os.close(folder)
        return connected
    except BaseException:
        connected.close()
        raise


def quote(text: str) -> str:
    """Encode one part of a URL."""
    return "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in os.fsencode(text))


def sleep_while_read(seconds: float) -> None:
    """Sleep. Raises BrokenPipeError at once if nobody reads our output any more."""
    poll = select.poll()
    if sys.stdout:
        poll.register(sys.stdout.fileno(), 0)
    if any(events & _GONE for _, events in poll.poll(seconds * 1000)):
        raise BrokenPipeError


class Connection:
    """One request over a socket: with a deadline, calls of `waiting`, and an end when nobody reads our output."""

    def __init__(
        self,
        connected: socket,
        notice: Notice,
        *,
        waiting: Waiting,
        deadline: float | None = None,
        output: int | None = None,
    ) -> None:
        self.socket = connected
        self.notice = notice
        self.waiting = waiting
        self.deadline = deadline
        self.advice = "Run `windlass daemon logs` to see why."
        """What to do when the deadline has passed."""
        self.output = output
        """The file that we write to; BrokenPipeError is raised when its reader leaves."""
        self.accepted = False
        """Whether the daemon has begun to answer: then we wait for what happens, not for it."""
        self.buffer = b""
        self.poll = select.poll()
        self.poll.register(connected, select.POLLIN)
        if output is not None:
            self.poll.register(output, 0)

    def send(self, method: str, target: str, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Send one request; the daemon closes the connection after its answer."""
        head = f"{method} {target} HTTP/1.1\r\nHost: windlass\r\nConnection: close\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        if body:
            head += "Content-Type: application/json\r\n"
        try:
            self.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode("ascii") + body)
        except ConnectionError:  # the daemon may have answered before it closed; then the answer says why
            return

    def head(self) -> tuple[int, dict[str, str]]:
        """The status and the headers of the answer."""
        words = self.row().split(None, 2)
        self.accepted = True
        if len(words) < 2 or not words[0].startswith(b"HTTP/"):
            raise Gone("Something else than a Windlass daemon answers on the daemon's socket.")
        headers = {}
        while row := self.row():
            name, _, value = row.partition(b":")
            headers[name.decode("latin-1").lower()] = value.strip().decode("latin-1")
        return int(words[1]), headers

    def body(self, headers: dict[str, str]) -> Iterator[bytes]:
        """Yield the answer's content as it arrives."""
        if headers.get("transfer-encoding", "").lower() == "chunked":
            while size := int(self.row().partition(b";")[0], 16):
                yield self.exactly(size)
                self.row()
        elif "content-length" in headers:
            yield self.exactly(int(headers["content-length"]))
        else:
            while self.buffer or self.fill():
                piece, self.buffer = self.buffer, b""
                yield piece

    def row(self) -> bytes:
        """Read one line of the head or of the chunking, without its end."""
        while b"\r\n" not in self.buffer:
            self.need()
        row, _, self.buffer = self.buffer.partition(b"\r\n")
        return row

    def exactly(self, size: int) -> bytes:
        while len(self.buffer) < size:
            self.need()
        piece, self.buffer = self.buffer[:size], self.buffer[size:]
        return piece

    def need(self) -> None:
        if not self.fill():
            raise Gone(
                "The daemon went away before it had answered.",
                hint="Run `windlass daemon logs` to see why; the next command starts it again.",
            )

    def write(self, content: bytes) -> None:
        """Send all of it, also to a daemon that takes it slowly."""
        left = memoryview(content)
        while left:
            try:
                left = left[self.socket.send(left, MSG_DONTWAIT) :]
            except BlockingIOError:
                self.poll.modify(self.socket, select.POLLOUT)
                self._wait()
        self.poll.modify(self.socket, select.POLLIN)

    def fill(self) -> bool:
        """Wait for more bytes; False at the end of the answer."""
        self._wait()
        try:
            more = self.socket.recv(65536)
        except ConnectionError:
            return False
        self.buffer += more
        return bool(more)

    def _wait(self) -> None:
        """Wait for the daemon. Whoever waits is told every second, and once if the daemon answers nobody."""
        began = time.monotonic()
        while not self._arrived():
            waited = time.monotonic() - began
            self.waiting(waited)
            self._tell(waited)
            if self.deadline is not None and time.monotonic() >= self.deadline:
                raise TimedOut("The daemon did not answer in time.", hint=self.advice)

    def _tell(self, waited: float) -> None:
        if found := self.notice(waited):
            from windlass.cli.output import tell  # noqa: PLC0415 - a quick answer needs none of it

            self.waiting(0.0)
            tell(f"{found.said}\n{found.advice}")
            if self.deadline is not None and not self.accepted:
                self.deadline, self.advice = min(self.deadline, time.monotonic() + found.within), found.advice

    def _arrived(self) -> bool:
        left = 1.0 if self.deadline is None else min(1.0, max(0.0, self.deadline - time.monotonic()))
        happened = self.poll.poll(left * 1000)
        if any(file == self.output and events & _GONE for file, events in happened):
            raise BrokenPipeError
        return bool(happened)
