"""Our own tools, by MCP: a bridge to the daemon on its standard input and output, as every coding CLI gets it."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from windlass.core.errors import Unavailable

COMMAND = ("windlass", "mcp")
VERSION = "2025-11-25"
START_SECONDS, CALL_SECONDS = 60.0, 120.0
LONGEST_LINE = 8_000_000
END_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class OurTool:
    """A tool as the daemon describes it."""

    name: str
    about: str
    schema: dict[str, Any]


class Refused(Exception):
    """A tool said no, in words for the model."""


@dataclass(slots=True)
class ToolClient:
    """Requests to the server, and its answers by the number of the request."""

    process: asyncio.subprocess.Process
    _waiting: dict[int, asyncio.Future[Mapping[str, Any]]] = field(default_factory=dict)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    async def greet(self) -> list[OurTool]:
        """Begin the session, and list the tools."""
        about = {"name": "windlass-model", "version": "1"}
        told = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": about}
        await self._ask("initialize", told, START_SECONDS)
        await self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        listed = await self._ask("tools/list", {}, START_SECONDS)
        return [OurTool(each["name"], each.get("description", ""), each["inputSchema"]) for each in listed["tools"]]

    async def call(self, name: str, given: Mapping[str, Any]) -> str:
        """What a tool answers; raises Refused with its words if it can't."""
        found = await self._ask("tools/call", {"name": name, "arguments": dict(given)}, CALL_SECONDS)
        text = "\n".join(str(each.get("text", "")) for each in found.get("content", ()))
        if found.get("isError"):
            raise Refused(text)
        return text

    async def listen(self) -> None:
        """Give each answer to whoever waits for it, until there are no more."""
        assert self.process.stdout is not None
        try:
            while line := await self.process.stdout.readline():
                with suppress(ValueError):
                    self._heard(json.loads(line))
        finally:
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(Unavailable("The connection to the daemon was lost."))

    def _heard(self, message: Mapping[str, Any]) -> None:
        waiting = self._waiting.get(message.get("id", -1)) if "method" not in message else None
        if waiting is None or waiting.done():
            return
        if "error" in message:
            waiting.set_exception(Refused(str(message["error"].get("message", "It did not work."))))
        else:
            waiting.set_result(message.get("result") or {})

    async def _ask(self, method: str, params: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(seconds):
                await self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
                return await self._waiting[number]
        except TimeoutError:
            raise Unavailable(f"The daemon did not answer {method} in {seconds:.0f} seconds.") from None
        finally:
            del self._waiting[number]

    async def _send(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            await self.process.stdin.drain()
        except ConnectionError:
            raise Unavailable("The connection to the daemon was lost.") from None


@asynccontextmanager
async def connected(environment: Mapping[str, str]) -> AsyncIterator[ToolClient]:
    """Start our server, and end it with the block."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=dict(environment),
        limit=LONGEST_LINE,
    )
    server = ToolClient(process)
    listening = asyncio.create_task(server.listen())
    try:
        yield server
    finally:
        await asyncio.shield(_leave(process))
        listening.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await listening


async def _leave(process: asyncio.subprocess.Process) -> None:
    """It ends with its input; if not, it is ended."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        async with asyncio.timeout(END_SECONDS):
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
