"""Serving the API: on the Unix socket, with the peer's credentials at hand, and on the port."""

from __future__ import annotations

import asyncio
import resource
import socket
import struct
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from windlass.core import codec

GRACE_SECONDS = 2
HEAD_SECONDS = 5.0
"""In which the head of a request must be whole."""
LARGEST_HEAD = 64_000
MOST_CALLERS = 4000
ACCEPTED_AT_ONCE = 64
"""Callers that are let in before those that are too many can be sent away."""
WAITING = 1024


def most_callers() -> int:
    """The limit of connections: half of our descriptors are for agents, git and the store."""
    return min(MOST_CALLERS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)


class PeerProtocol(HttpToolsProtocol):
    """Puts the peer's uid and pid where the request looks for its client, and bounds what a caller may hold."""

    _head: asyncio.TimerHandle | None = None
    """Runs until a request's head is whole."""
    _received = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._await_head()
        if len(self.connections) > most_callers():
            self._refuse(503, "The daemon has as many callers as it can take.")
            return
        peer = transport.get_extra_info("socket")
        if peer is not None and peer.family == socket.AF_UNIX:
            credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            pid, uid, _ = struct.unpack("3i", credentials)
            self.client = (str(uid), pid)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._received += len(data)
        if self._head and self._received > LARGEST_HEAD:
            self._refuse(431, f"The head of the request has more than {LARGEST_HEAD} bytes.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._await_head()

    def on_headers_complete(self) -> None:
        self._head_is_whole()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_whole()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        self._head_is_whole()
        self._received = 0
        self._head = self.loop.call_later(HEAD_SECONDS, self._refuse, 408, "The request did not come in time.")

    def _head_is_whole(self) -> None:
        if self._head:
            self._head.cancel()
            self._head = None

    def _refuse(self, status: int, words: str) -> None:
        """Answer by hand and hang up: there is no request yet that the API could answer."""
        self._head_is_whole()
        if self.transport.is_closing():
            return
        body = codec.encode({"error": {"kind": "Unavailable", "message": words, "hint": ""}})
        head = f"HTTP/1.1 {status} Refused\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self.transport.write(head.encode() + b"Connection: close\r\n\r\n" + body)
        self.transport.close()


class DaemonServer(uvicorn.Server):
    """uvicorn without its own signal handling: the daemon decides when to leave."""

    def __init__(self, app: Any, door: socket.socket) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=PeerProtocol,
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
