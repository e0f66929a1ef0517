"""Serving the API on the Unix socket, with the peer's credentials at hand."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

GRACE_SECONDS = 2


class PeerProtocol(HttpToolsProtocol):
    """Puts the peer's uid and pid where the request looks for its client."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        peer = transport.get_extra_info("socket")
        if peer is not None and peer.family == socket.AF_UNIX:
            credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            pid, uid, _ = struct.unpack("3i", credentials)
            self.client = (str(uid), pid)


class Server(uvicorn.Server):
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
            )
        )
        self.door = door

    async def run_until(self, leaving: asyncio.Event, end_streams: Callable[[], None]) -> None:
        """Serve until it is time to leave, then let requests end."""
        serving = asyncio.create_task(self._serve(sockets=[self.door]))
        leave = asyncio.create_task(leaving.wait())
        await asyncio.wait({serving, leave}, return_when=asyncio.FIRST_COMPLETED)
        end_streams()
        self.should_exit = True
        leave.cancel()
        await serving
