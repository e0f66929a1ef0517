"""Serving the API: on the Unix socket, with the peer's credentials at hand, and on the port."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from windlass.core import codec
from windlass.core.errors import Unavailable, WindlassError
from windlass.daemon.serving.shares import UNKNOWN, Shares
from windlass.web.authentication import CALLER, KNOWN, Caller

Identify = Callable[[socket.socket], str]
"""The run that has made a connection to the socket; nothing for the person. Raises NotAllowed for anybody else."""

GRACE_SECONDS = 2
HEAD_SECONDS = 5.0
"""In which the head of a request must be whole."""
BODY_SECONDS = 30.0
"""In which its body must be whole."""
LARGEST_HEAD = 64_000
ACCEPTED_AT_ONCE = 64
"""Callers that are let in before those that are too many can be sent away."""
WAITING = 1024


class PeerProtocol(HttpToolsProtocol):
    """Identifies who connects, once, and bounds what a caller may hold."""

    _due: asyncio.TimerHandle | None = None
    """Runs until a request's head, and then its body, is whole."""
    _in_head = True
    _received = 0
    _holder: str | None = None
    """Whose share the connection is counted in; nobody's, if it was refused."""

    def __init__(self, identify: Identify, shares: Shares, **given: Any) -> None:
        super().__init__(**given)
        self._identify = identify
        self._shares = shares
        self._drop = partial(self._refuse, 503, "Too many callers connect, and say nothing.")

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._await_head()
        peer = transport.get_extra_info("socket")
        found = self._caller(peer) if peer is not None and peer.family == socket.AF_UNIX else None
        self.app_state = {**self.app_state, CALLER: found, KNOWN: self._hold}
        try:
            self._hold(found.run if isinstance(found, Caller) else UNKNOWN)
        except Unavailable as error:
            self._refuse(503, str(error))

    def _caller(self, peer: socket.socket) -> Caller | WindlassError:
        try:
            return Caller(self._identify(peer))
        except WindlassError as error:
            return error

    def _hold(self, holder: str) -> None:
        """Count the connection in the share of whoever is known to have made it. Raises Unavailable."""
        if holder == self._holder:
            return
        self._shares.take(holder, self._drop)
        self._let_go()
        self._holder = holder

    def _let_go(self) -> None:
        if self._holder is not None:
            self._shares.leave(self._holder, self._drop)
            self._holder = None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._received += len(data)
        if self._due and self._in_head and self._received > LARGEST_HEAD:
            self._refuse(431, f"The head of the request has more than {LARGEST_HEAD} bytes.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._await_head()

    def on_headers_complete(self) -> None:
        self._await(BODY_SECONDS, in_head=False)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._is_whole()
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_whole()
        self._let_go()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        self._received = 0
        self._await(HEAD_SECONDS, in_head=True)

    def _await(self, seconds: float, *, in_head: bool) -> None:
        self._is_whole()
        self._in_head = in_head
        self._due = self.loop.call_later(seconds, self._refuse, 408, "The request did not come in time.")

    def _is_whole(self) -> None:
        if self._due:
            self._due.cancel()
            self._due = None

    def _refuse(self, status: int, words: str) -> None:
        """Answer by hand and hang up: there is no whole request that the API could answer, or it was answered."""
        self._is_whole()
        self._let_go()
        if self.transport.is_closing():
            return
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            self.transport.close()  # words in the middle of an answer would be taken for a part of it
            return
        body = codec.encode({"error": {"kind": "Unavailable", "message": words, "hint": ""}})
        head = f"HTTP/1.1 {status} Refused\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self.transport.write(head.encode() + b"Connection: close\r\n\r\n" + body)
        self.transport.close()


class DaemonServer(uvicorn.Server):
    """uvicorn without its own signal handling: the daemon decides when to leave."""

    def __init__(self, app: Any, door: socket.socket, identify: Identify, shares: Shares) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=cast(Any, partial(PeerProtocol, identify, shares)),  # called like the class
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                timeout_graceful_shutdown=GRACE_SECONDS,
                server_header=False,
                backlog=ACCEPTED_AT_ONCE,
                date_header=False,
            )
        )
        self.door = door
        self._told = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve; those who can't be let in at once may wait."""
        await super().startup(sockets)
        self.door.listen(WAITING)

    async def run_until(self, leaving: asyncio.Event, end_streams: Callable[[], None]) -> None:
        """Serve until it is time to leave, then let requests end."""
        serving = asyncio.create_task(self._serve(sockets=[self.door]))
        leave = asyncio.create_task(leaving.wait())
        await asyncio.wait({serving, leave}, return_when=asyncio.FIRST_COMPLETED)
        end_streams()
        self._told.set()
        leave.cancel()
        await serving

    async def main_loop(self) -> None:
        """Wait to be told. uvicorn's own looks around ten times a second, more than all that an idle daemon does."""
        await self._told.wait()
