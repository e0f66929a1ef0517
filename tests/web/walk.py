"""Every call that the tables of routes and tools allow, with the ids of one project's things in it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import httpx2
import msgspec
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from starlette.types import Message
from two_projects import RUN_HEADER, NamedCallers, TwoProjects

import patience
from windlass.core.requests import Request
from windlass.daemon.serving.mcp_loader import LateTools
from windlass.mcp.tools import TOOLS
from windlass.web.app import ROUTES, build
from windlass.web.route import READ, ApiRoute

UNKNOWN = ("m999999", "nobody")
"""Ids that nothing has."""
NEWER = "2026-07-28"


@dataclass(frozen=True, slots=True)
class Ask:
    """One call of a route."""

    route: ApiRoute
    path: str
    key: str
    """The id in the path, if there is one."""
    given: dict[str, Any]

    @property
    def reads(self) -> bool:
        return self.route.method == READ

    def __str__(self) -> str:
        return f"{self.route.method} {self.path} {json.dumps(self.given)}"


@dataclass(frozen=True, slots=True)
class Heard:
    """The answer to a call."""

    ask: Ask
    number: int
    words: str

    @property
    def without_key(self) -> str:
        """The words, as if nothing had been named."""
        return self.words.replace(self.ask.key, "*") if self.ask.key else self.words


class Walk:
    """Makes every call there is about the things of the victim."""

    def __init__(self, stage: TwoProjects) -> None:
        self.stage = stage
        self.tools = LateTools(stage.engine)
        self.app = build(stage.engine, stage.context, NamedCallers(), self.tools)
        self.ids: dict[str, list[str]] = {}
        self.last = 0
        """The newest event."""

    async def begin(self) -> None:
        await self.stage.plant()
        self.ids = await self.stage.ids()
        self.planted = await self.stage.engine.journal.last_seq()

    async def end(self) -> None:
        await self.tools.close()

    async def routes(self, run: str = "", *, only: Callable[[Ask], bool] = lambda _ask: True) -> list[Heard]:
        """What a run is answered, or a person."""
        return [await self._heard(ask, run) for ask in self._asks() if only(ask)]

    async def called(self, run: str) -> list[str]:
        """What a run is answered by each tool, and by what else there is."""
        async with self._client(run) as client:
            found = [str(await client.list_tools()), str(await client.list_resources())]
            found.append(str(await client.read_resource("inbox://me")))
            for tool in TOOLS:
                for given in self._given(tool.arguments):
                    found.append(str(await client.call_tool(tool.name, given)))
            return found

    @asynccontextmanager
    async def _client(self, run: str) -> AsyncIterator[Client]:
        near = httpx2.ASGITransport(app=self.app)
        async with httpx2.AsyncClient(transport=near, headers={RUN_HEADER: run}) as http:
            transport = streamable_http_client("http://localhost/mcp", http_client=http)
            async with Client(transport, mode=NEWER, read_timeout_seconds=patience.seconds(10)) as client:
                yield client

    # ── the calls ──

    def _asks(self) -> Iterator[Ask]:
        for route in ROUTES:
            for path, key in self._paths(route.path):
                for given in self._given(route.given):
                    yield Ask(route, path, key, given)

    def _paths(self, path: str) -> Iterator[tuple[str, str]]:
        """A path, with each of the ids that it could name."""
        if "{" not in path:
            yield path, ""
            return
        nouns = {"tasks": "task", "changes": "change", "agents": "agent", "instances": "instance"}
        start = path.split("/")[1]
        known = ["notes"] if start == "documents" else self.ids[nouns.get(start, "message")]
        for key in (*known, UNKNOWN[start not in ("conversations", "messages")]):
            yield path.replace("{id}", quote(key)).replace("{name}", quote(key)).replace("{comment}", "m1"), key

    def _given(self, kind: Any) -> Iterator[dict[str, Any]]:
        """What is needed, and with it each thing that may be given."""
        if not (isinstance(kind, type) and issubclass(kind, Request)):
            yield from ({}, {"zzzz": "1"})
            return
        fields, values = msgspec.structs.fields(kind), self._values()
        needed = {each.encode_name: values.get(each.encode_name, ["x"])[0] for each in fields if each.required}
        needed |= {each.encode_name: 0 for each in fields if each.encode_name == "timeout"}
        yield needed
        yield needed | {"zzzz": "1"}
        for each in fields:
            yield from (needed | {each.encode_name: value} for value in values.get(each.encode_name, ()))

    def _values(self) -> dict[str, list[Any]]:
        """What a field with this name may be given, about the victim."""
        agents, messages, tasks = self.ids["agent"], self.ids["message"], self.ids["task"]
        return {
            "agent": agents[:1],
            "agent_id": agents[:2],
            "all": [True],
            "channel": ["main", "@jam", *(f"task/{task}" for task in tasks[:2])],
            "conversation": messages,
            "error": ["It went wrong."],
            "exact": [True],
            "feed": [True],
            "from": agents[:1],
            "ids": [messages[:1]],
            "instance": ["jam"],
            "look": [True],
            "name": [*agents[:1], "notes"],
            "path": [str(self.stage.repo)],
            "phase": tasks[:1],
            "phase_id": tasks[:1],
            "questions": [["Why?"]],
            "ref": ["1", "2", "3", "4"],
            "reply_to": messages[:2],
            "result": ["All of it."],
            "since": [0, messages[0]],
            "task": tasks[:1],
            "task_id": tasks[:1],
            "to": [agents[0], [agents[0]]],
        }

    # ── the answers ──

    async def _heard(self, ask: Ask, run: str) -> Heard:
        """The answer to a call; of a stream, what it tells of by now."""
        query = urlencode(ask.given) if ask.reads else ""
        body = b"" if ask.reads else json.dumps(ask.given).encode()
        scope = {
            "type": "http",
            "method": ask.route.method,
            "path": ask.path,
            "query_string": query.encode(),
            "headers": [(b"host", b"windlass"), (RUN_HEADER.encode(), run.encode())],
        }
        coming: list[Message] = [{"type": "http.request", "body": body}]
        sent: list[Message] = []
        enough = asyncio.Event()

        async def receive() -> Message:
            if coming:
                return coming.pop()
            await enough.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            sent.append(message)
            if message["type"] == "http.response.body" and self._is_enough(ask, _words(sent)):
                enough.set()

        self.last = await self.stage.engine.journal.last_seq()
        async with asyncio.timeout(patience.seconds(10)):
            await self.app(scope, receive, send)
        return Heard(ask, sent[0]["status"], _words(sent).decode())

    def _is_enough(self, ask: Ask, told: bytes) -> bool:
        """Whether a stream has told what there is by now."""
        if ask.route.path != "/events":
            return bool(told)
        return (b"status.changed" if ask.given.get("feed") else b"id: %d\n" % self.last) in told


def _words(sent: list[Message]) -> bytes:
    return b"".join(message.get("body", b"") for message in sent)
