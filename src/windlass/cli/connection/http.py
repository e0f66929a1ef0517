"""HTTP over a Unix socket by hand: importing the standard library's client would double the time of a command."""

from __future__ import annotations

import os
import select
import sys
import time
from _socket import AF_UNIX, SOCK_STREAM, socket  # `socket` itself builds enums that take longer than our request
from collections.abc import Callable, Iterator, Mapping

from windlass.core.errors import TimedOut, Unavailable

LONGEST_PATH = 100
"""Bytes of a socket's path that every system takes."""
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_GONE = select.POLLERR | select.POLLHUP


class Gone(Unavailable):
    """The daemon hung up before it had said all."""


def dial(home: str) -> socket:
    """Connect to the daemon of a home, however long the home's path is."""
    line = socket(AF_UNIX, SOCK_STREAM)
    try:
        if len(os.fsencode(f"{home}/daemon.sock")) <= LONGEST_PATH:
            line.connect(f"{home}/daemon.sock")
            return line
        folder = os.open(home, os.O_PATH | os.O_DIRECTORY)
        try:
            line.connect(f"/proc/self/fd/{folder}/daemon.sock")
        finally:
            os.close(folder)
        return line
    except BaseException:
        line.close()
        raise


def quote(text: str) -> str:
    """One part of a URL."""
    return "".join(chr(each) if each in _UNRESERVED else f"%{each:02X}" for each in os.fsencode(text))


def watch_outlet(seconds: float) -> None:
    """Sleep, unless the reader of our output leaves: then there is nobody left to wait for."""
    poll = select.poll()
    if sys.stdout:
        poll.register(sys.stdout.fileno(), 0)
    if any(events & _GONE for _, events in poll.poll(seconds * 1000)):
        raise BrokenPipeError


class Connection:
    """Bytes from a socket: with a deadline, news of the wait, and an eye on our own reader."""

    def __init__(
        self,
        line: socket,
        *,
        waiting: Callable[[float], None],
        deadline: float | None = None,
        outlet: int | None = None,
    ) -> None:
        self.line = line
        self.waiting = waiting
        self.deadline = deadline
        self.outlet = outlet
        """A file that we write to: when its reader leaves, so do we."""
        self.buffer = b""
        self.poll = select.poll()
        self.poll.register(line, select.POLLIN)
        if outlet is not None:
            self.poll.register(outlet, 0)

    def send(self, method: str, target: str, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Send one request; the daemon closes the connection after its answer."""
        head = f"{method} {target} HTTP/1.1\r\nHost: windlass\r\nConnection: close\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        if body:
            head += "Content-Type: application/json\r\n"
        try:
            self.line.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode("ascii") + body)
        except ConnectionError:  # it may have answered before it closed; then the answer says why
            return

    def head(self) -> tuple[int, dict[str, str]]:
        """The status and the headers of the answer."""
        words = self.row().split(None, 2)
        if len(words) < 2 or not words[0].startswith(b"HTTP/"):
            raise Gone("What answers on the daemon's socket is not a Windlass daemon.")
        headers = {}
        while row := self.row():
            name, _, value = row.partition(b":")
            headers[name.decode("latin-1").lower()] = value.strip().decode("latin-1")
        return int(words[1]), headers

    def body(self, headers: dict[str, str]) -> Iterator[bytes]:
        """The answer's content, piece by piece as it comes."""
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
        """One line of the head or of the framing, without its end."""
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

    def fill(self) -> bool:
        """Wait for more bytes; False when there are none to come."""
        began = time.monotonic()
        while not self._arrived():
            self.waiting(time.monotonic() - began)
            if self.deadline is not None and time.monotonic() >= self.deadline:
                raise TimedOut("The daemon did not answer in time.", hint="Run `windlass daemon logs` to see why.")
        try:
            more = self.line.recv(65536)
        except ConnectionError:
            return False
        self.buffer += more
        return bool(more)

    def _arrived(self) -> bool:
        left = 1.0 if self.deadline is None else min(1.0, max(0.0, self.deadline - time.monotonic()))
        happened = self.poll.poll(left * 1000)
        if any(file == self.outlet and events & _GONE for file, events in happened):
            raise BrokenPipeError
        return bool(happened)
