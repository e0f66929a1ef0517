"""Clients of the official SDK, as people and as agents, over both transports and in both eras of the protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from e2e_stage import WITHIN, Stage, stage
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent

from patience import until

OLDER, NEWER = "legacy", "2026-07-28"
ERAS = {"older": OLDER, "newer": NEWER}
TRANSPORTS = ("stdio", "http")
EVERY_WAY = pytest.mark.parametrize(
    ("transport", "era"), [(one, other) for one in TRANSPORTS for other in ERAS.values()]
)
SETTINGS = "[limits]\nruns = 24\nreminders = 0\nretries = 0\n[daemon]\nstop_grace_seconds = 0.5\n"


@dataclass(frozen=True, slots=True)
class Way:
    """How to call: which transport, which era."""

    transport: str = "http"
    era: str = NEWER


@dataclass(frozen=True, slots=True)
class Worker:
    """An agent at work, from inside whose run a bridge can be had."""

    house: Stage
    name: str
    pid: int

    @property
    def token(self) -> str:
        return variable(self.pid, "WINDLASS_TOKEN")

    @asynccontextmanager
    async def client(self, way: Way, **more: Any) -> AsyncIterator[Client]:
        """A client that is this agent."""
        if way.transport == "http":
            async with over_http(self.house, self.token, way.era, **more) as client:
                yield client
            return
        into, out = self.house.flag(f"{self.name}.in"), self.house.flag(f"{self.name}.out")
        relay = StdioServerParameters(command="sh", args=["-c", f"cat '{out}' & exec cat > '{into}'"])
        async with Client(relay, mode=way.era, read_timeout_seconds=WITHIN, **more) as client:
            yield client


@dataclass(frozen=True, slots=True)
class Place:
    """A person's machine on which agents are at work."""

    house: Stage

    @property
    def token(self) -> str:
        return (self.house.state / "token").read_text().strip()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{(self.house.state / 'port').read_text().strip()}/mcp"

    def worker(self, title: str = "Wait for mail") -> Worker:
        """An agent whose run is a bridge, as often as someone connects."""
        begin = 'into="$1.in" out="$1.out"; mkfifo "$into" "$out"'
        script = self.house.flag("serve.sh")
        script.write_text(f'{begin}\nwhile [ -p "$into" ]; do windlass mcp < "$into" > "$out"; done\n')
        command = f'exec sh {script} "{self.house.folder}/$WINDLASS_AGENT"'
        name = self.house.work(title, command)
        pid = self.house.pid(name)
        until(lambda: self.house.flag(f"{name}.out").exists(), "its bridge")
        return Worker(self.house, name, pid)

    @asynccontextmanager
    async def person(self, way: Way = Way(), **more: Any) -> AsyncIterator[Client]:  # noqa: B008 - it never changes
        """A client that is the person, in their repository."""
        if way.transport == "http":
            async with over_http(self.house, self.token, way.era, **more) as client:
                yield client
            return
        async with Client(self.bridge(), mode=way.era, read_timeout_seconds=WITHIN, **more) as client:
            yield client

    def bridge(self) -> StdioServerParameters:
        first, *rest = self.house.program
        return StdioServerParameters(
            command=first, args=[*rest, "mcp"], env=self.house.environment, cwd=str(self.house.repo)
        )


@asynccontextmanager
async def over_http(
    house: Stage, token: str, era: str, headers: Mapping[str, str] | None = None, **more: Any
) -> AsyncIterator[Client]:
    port = (house.state / "port").read_text().strip()
    headers = {"Authorization": f"Bearer {token}", "Windlass-Path": quote(str(house.repo)), **(headers or {})}
    async with httpx2.AsyncClient(headers=headers, timeout=WITHIN) as http:
        transport = streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http)
        async with Client(transport, mode=era, read_timeout_seconds=WITHIN, **more) as client:
            yield client


@contextmanager
def place() -> Iterator[Place]:
    """A stage with a project and a daemon; whoever is at work there is stopped at the end."""
    with stage(settings=SETTINGS, WINDLASS_SANDBOX="off") as house:
        house.wl("init")
        try:
            yield Place(house)
        finally:
            house.wl("stop", "--all", code=None)


def variable(pid: int, name: str) -> str:
    """A variable of a process."""
    found = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return next(each.partition(b"=")[2].decode() for each in found if each.startswith(f"{name}=".encode()))


async def call(client: Client, tool: str, /, **given: Any) -> Any:
    """What a tool answers; it must not refuse."""
    result = await client.call_tool(tool, given)
    assert isinstance(result, CallToolResult)
    assert not result.is_error, said(result)
    return result.structured_content


async def refused(client: Client, tool: str, /, **given: Any) -> str:
    """The words with which a tool refuses."""
    result = await client.call_tool(tool, given)
    assert isinstance(result, CallToolResult)
    assert result.is_error, said(result)
    return said(result)


def said(result: CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text
