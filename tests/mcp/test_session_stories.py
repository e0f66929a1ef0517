"""Sessions of clients of the older era: a share for each caller, gone with its run, and no news that end a client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from stage import play
from starlette.datastructures import Headers
from starlette.types import Message
from talk_room import Room

import patience
from windlass.mcp import sessions
from windlass.mcp.server import ToolServer

BOTH = "application/json, text/event-stream"


@pytest.fixture
def room(repo: Path, tmp_path: Path) -> Room:
    return Room(repo, tmp_path / "home")


class Post:
    """Clients that send by hand: one request each, as the daemon's entrance passes it on."""

    def __init__(self, server: ToolServer) -> None:
        self.server = server

    async def begin(self, run: str, version: str = "2025-11-25") -> tuple[int, str]:
        """The handshake; returns the number of the answer, and the session."""
        about = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "hand", "version": "1"}}
        return await self.send(run, "initialize", about)

    async def send(
        self, run: str, method: str, params: dict[str, Any] | None = None, session: str = "", verb: str = "POST"
    ) -> tuple[int, str]:
        said: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        said |= {} if method.startswith("notifications/") else {"id": 1}
        sent: list[Message] = []
        await self.server.serve(run, scope(verb, session), whole(json.dumps(said).encode()), keep(sent))
        return sent[0]["status"], Headers(raw=sent[0]["headers"]).get(sessions.SESSION_HEADER, "")

    async def knows(self, run: str, session: str) -> bool:
        return (await self.send(run, "ping", session=session))[0] == 200


def scope(verb: str, session: str) -> dict[str, Any]:
    given = {"host": "localhost", "content-type": "application/json", "accept": BOTH}
    given |= {sessions.SESSION_HEADER: session} if session else {}
    headers = [(name.encode(), value.encode()) for name, value in given.items()]
    return {"type": "http", "method": verb, "path": "/mcp", "query_string": b"", "headers": headers}


def whole(body: bytes) -> Callable[[], Awaitable[Message]]:
    coming: list[Message] = [{"type": "http.request", "body": body}]

    async def receive() -> Message:
        return coming.pop() if coming else await asyncio.Future()

    return receive


def keep(sent: list[Message]) -> Callable[[Message], Awaitable[None]]:
    async def send(message: Message) -> None:
        sent.append(message)

    return send


async def at_work(room: Room) -> tuple[str, str]:
    """Two agents at work; returns their runs."""
    await room.begin("coder", "tester")
    for name in ("coder", "tester"):
        await room.send(to=(name,), body="Begin.")
    await room.move()
    return (await room.run_of("coder")).id, (await room.run_of("tester")).id


def test_a_run_has_a_share_and_loses_the_session_it_used_longest_ago(room: Room) -> None:
    """So it keeps MCP from nobody else, however many it begins; and a client that is begun anew goes on."""

    async def story() -> None:
        run, other = await at_work(room)
        server = ToolServer(room.engine)
        await server.open()
        post = Post(server)
        (_, first), (_, second) = await post.begin(run), await post.begin(run)
        assert await post.knows(run, first)
        begun = [await post.begin(run) for _ in range(sessions.MOST_OF_A_RUN - 1)]
        assert {number for number, _ in begun} == {200}
        assert (await post.knows(run, first), await post.knows(run, second)) == (True, False)
        assert len(server.sessions.of(run)) == sessions.MOST_OF_A_RUN
        for caller in (other, ""):
            number, session = await post.begin(caller)
            assert (number, await post.knows(caller, session)) == (200, True)
            assert not await post.knows(caller, first), "it is another's"
        await server.close()

    play(story)


def test_the_sessions_of_a_run_end_with_it(room: Room) -> None:
    """Also of a client that began one and said nothing more."""

    async def story() -> None:
        run, other = await at_work(room)
        server = ToolServer(room.engine)
        await server.open()
        post = Post(server)
        silent, (_, greeted) = await post.begin(run), await post.begin(run)
        await post.send(run, "notifications/initialized", session=greeted)
        _, kept = await post.begin(other)
        assert silent[1] and [len(server.sessions.of(each)) for each in (run, other)] == [2, 1]
        await room.signal("coder")
        await room.exit("coder")
        await room.move()
        ear = room.engine.bell.ear()
        async with asyncio.timeout(patience.seconds(10)):
            while server.sessions.of(run):
                room.engine.bell.ring()
                await ear.wait()
                ear.clear()
                await room.store.read(lambda store: store.last_seq())
        assert await post.knows(other, kept)
        await server.close()

    play(story)


def test_a_session_that_its_client_ends_is_gone(room: Room) -> None:
    """And another caller can't end it."""

    async def story() -> None:
        run, other = await at_work(room)
        server = ToolServer(room.engine)
        await server.open()
        post = Post(server)
        _, session = await post.begin(run)
        await post.send(other, "ping", session=session, verb="DELETE")
        assert await post.knows(run, session)
        await post.send(run, "ping", session=session, verb="DELETE")
        assert (server.sessions.of(run), await post.knows(run, session)) == ([], False)
        await server.close()

    play(story)


@pytest.mark.parametrize(
    ("version", "methods"),
    [
        ("2024-11-05", ["notifications/resources/updated"]),
        ("2025-11-25", ["notifications/mention", "notifications/resources/updated"]),
    ],
)
def test_a_client_of_the_first_version_is_sent_only_what_it_knows(room: Room, version: str, methods: list[str]) -> None:
    """Those ended at a notification that stands in no specification; and what it subscribed to, it is told."""

    async def story() -> None:
        run, _ = await at_work(room)
        server = ToolServer(room.engine)
        await server.open()
        post, heard, opened, enough = Post(server), bytearray(), asyncio.Event(), asyncio.Event()
        _, session = await post.begin(run, version)
        await post.send(run, "notifications/initialized", session=session)
        await post.send(run, "resources/subscribe", {"uri": "inbox://me"}, session=session)

        async def hear(message: Message) -> None:
            opened.set()
            heard.extend(message.get("body", b""))
            if b"resources/updated" in heard:
                enough.set()

        following = asyncio.create_task(server.serve(run, scope("GET", session), whole(b""), hear))
        async with asyncio.timeout(patience.seconds(10)):
            await opened.wait()
            await room.send(to=("coder",), body="Look.")
            room.engine.bell.ring()
            await enough.wait()
        told = [line for line in heard.decode().splitlines() if line.startswith("data: {")]
        assert [json.loads(line.removeprefix("data: "))["method"] for line in told] == methods
        await server.close()
        await asyncio.gather(following, return_exceptions=True)

    play(story)
