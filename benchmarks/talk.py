"""A long channel read by page, and a tool called through the daemon beside a bare server that echoes."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
from crowd import PROJECT, daemon, populate
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from measure import Result, percentile

from windlass.core.nouns.message import Delivery, Message
from windlass.core.ports.store import Writing
from windlass.daemon.clock import SystemClock
from windlass.store.sqlite import SqliteStore

PAGE = 50
ERA = "2026-07-28"
WAIT = 60.0

ECHO = """
import sys
from mcp.server import MCPServer
server = MCPServer("echo")
@server.tool()
def echo(message: str) -> str:
    return message
server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
"""


def talk(*, quick: bool) -> Sequence[Result]:
    """Both are asked over HTTP on the loopback, by the official client."""
    sizes = (1_000, 10_000) if quick else (1_000, 100_000)
    few, many = zip(*asyncio.run(_pages(_page, *sizes)), strict=True)
    hidden, more_hidden = zip(*asyncio.run(_pages(_glance, *sizes)), strict=True)
    ours, bare = _calls(40 if quick else 200)
    return [
        Result(
            name="channel",
            what=f"a page of a channel with {sizes[1]} messages / with {sizes[0]}",
            unit="ms",
            ours=percentile(many, 0.5),
            floor=percentile(few, 0.5),
            goal=1.2,
        ),
        Result(
            name="stranger",
            what=f"what one sees to whom nothing is said among {sizes[1]} messages / among {sizes[0]}",
            unit="ms",
            ours=percentile(more_hidden, 0.5),
            floor=percentile(hidden, 0.5),
            goal=1.2,
        ),
        Result(
            name="tool",
            what="channel_send, durably, through the MCP endpoint / a bare MCP server that echoes",
            unit="ms",
            ours=percentile(ours, 0.5),
            floor=percentile(bare, 0.5),
            goal=3.0,
        ),
    ]


# ── a long channel ──


Look = Callable[[SqliteStore, int, int], Awaitable[float]]


async def _pages(look: Look, few: int, many: int) -> list[tuple[float, float]]:
    """Milliseconds for a look at each, by an agent: what is for others alone is left out."""
    with tempfile.TemporaryDirectory(prefix="wl") as folder:
        stores = [await _channel(f"{folder}/{size}.db", size) for size in (few, many)]
        found = [(await look(stores[0], few, number), await look(stores[1], many, number)) for number in range(200)]
        for store in stores:
            await store.close()
    return found


async def _channel(file: str, size: int) -> SqliteStore:
    store = SqliteStore(file, SystemClock())
    for start in range(0, size, 2_000):
        await store.write(partial(_fill, range(start, min(size, start + 2_000))))
    return store


def _fill(numbers: range, store: Writing) -> None:
    for number in numbers:
        to = (f"agent-{number % 20}",)
        said = Message(
            id=store.next_id(Message),
            project="p",
            channel="main",
            sender="human",
            to=to,
            body=f"Word {number}, and some more of them.",
            direct=number % 3 == 0,
        )
        store.record("message.sent", said.id, said, Delivery(message=said.id, reader=to[0]))


async def _glance(store: SqliteStore, _size: int, _number: int) -> float:
    """The newest that one in another instance may see, to whom nobody has spoken."""
    began = time.perf_counter()
    assert await store.read(lambda store: store.said("p", viewer="agent-99", home="@other", limit=PAGE)) == []
    return (time.perf_counter() - began) * 1000


async def _page(store: SqliteStore, size: int, number: int) -> float:
    """A page in the middle."""
    after = size // 2 + number
    began = time.perf_counter()
    found = await store.read(
        lambda store: store.said("p", channel="main", viewer="agent-7", after=after, limit=PAGE, newest=False)
    )
    assert len(found) == PAGE
    return (time.perf_counter() - began) * 1000


# ── a tool ──


def _calls(rounds: int) -> tuple[list[float], list[float]]:
    """Milliseconds of each call, ours and theirs by turns."""
    with tempfile.TemporaryDirectory(prefix="wl") as folder:
        home = Path(folder) / "home"
        populate(home, [])
        with daemon(home), _echo() as port:
            mine = int(_until_written(home / "port")), _until_written(home / "token")
            pairs = asyncio.run(_by_turns(mine, (port, "none"), rounds))
    ours, bare = zip(*pairs, strict=True)
    return list(ours), list(bare)


async def _by_turns(mine: tuple[int, str], theirs: tuple[int, str], rounds: int) -> list[tuple[float, float]]:
    async with _client(*mine) as ours, _client(*theirs) as bare:
        for client, tool in ((ours, "channel_send"), (bare, "echo")):
            await _call(client, tool)  # the first imports what it needs
        return [(await _call(ours, "channel_send"), await _call(bare, "echo")) for _ in range(rounds)]


def _until_written(file: Path) -> str:
    deadline = time.monotonic() + WAIT
    while time.monotonic() < deadline:
        if file.exists() and (text := file.read_text().strip()):
            return text
        time.sleep(0.01)
    raise TimeoutError(f"{file.name} is not there.")


async def _call(client: Client, tool: str) -> float:
    began = time.perf_counter()
    answer = await client.call_tool(tool, {"message": f"Word to {PROJECT.name}."})
    assert not answer.is_error, answer
    return (time.perf_counter() - began) * 1000


@asynccontextmanager
async def _client(port: int, token: str) -> AsyncIterator[Any]:
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=WAIT) as http:
        transport = streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http)
        async with Client(transport, mode=ERA, read_timeout_seconds=WAIT) as client:
            yield client


@contextmanager
def _echo() -> Iterator[int]:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        port = int(door.getsockname()[1])
    process = subprocess.Popen(
        [sys.executable, "-c", ECHO, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + WAIT
        while time.monotonic() < deadline:
            with socket.socket() as line:
                if line.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield port
    finally:
        process.kill()
        process.wait()
