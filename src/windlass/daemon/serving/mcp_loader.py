"""The tools that agents call, built when they are first called for: what they stand on takes a second to import."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING

from starlette.types import Receive, Scope, Send

from windlass.core.errors import Unavailable
from windlass.engine import Engine

if TYPE_CHECKING:  # the very import that is put off
    from windlass.mcp.server import ToolServer


class LateTools:
    """Answers at `/mcp`. Nothing is imported, and nothing runs, before someone calls."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._building = asyncio.Lock()
        self._server: ToolServer | None = None
        self._closed = False

    async def __call__(self, run: str, scope: Scope, receive: Receive, send: Send) -> None:
        server = self._server or await self._built()
        await server.serve(run, scope, receive, send)

    async def _built(self) -> ToolServer:
        async with self._building:
            if self._closed:
                raise Unavailable("The daemon is leaving.", hint="Ask again: the next one answers.")
            if self._server is None:
                module = await asyncio.to_thread(import_module, "windlass.mcp.server")
                server: ToolServer = module.ToolServer(self._engine)
                await server.open()
                self._server = server
            return self._server

    def leave(self) -> None:
        """End what is open, so that nobody waits for a daemon that leaves."""
        self._closed = True
        if self._server is not None:
            self._server.leave()

    async def close(self) -> None:
        """Leave, and wait until all has ended."""
        async with self._building:
            self.leave()
            if self._server is not None:
                await self._server.close()
