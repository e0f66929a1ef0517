"""An agent that is stopped while its request is on its way is not heard any more."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from stage import play
from talk_room import Room
from two_projects import RUN_HEADER, NamedCallers
from walk import NEWER

from windlass.core.ports.store import Reading
from windlass.mcp.server import ToolServer
from windlass.web.app import build

TOOL_CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {
        "name": "channel_send",
        "arguments": {"message": "late"},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": NEWER,
            "io.modelcontextprotocol/clientInfo": {"name": "late", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    },
}
HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": NEWER,
    "Mcp-Method": "tools/call",
    "Mcp-Name": "channel_send",
}


@pytest.fixture
def room(repo: Path, tmp_path: Path) -> Room:
    return Room(repo, tmp_path / "home")


def _said(store: Reading) -> list[str]:
    return [message.body for message in store.said(store.projects()[0].id, limit=100)]


@pytest.mark.parametrize(
    ("path", "given"),
    [("/messages", {"body": "late"}), ("/agent/signal", {"status": "done"}), ("/mcp", TOOL_CALL)],
)
def test_a_body_that_ends_after_the_stop_is_refused(room: Room, path: str, given: dict[str, Any]) -> None:
    """Its head came while the run was going on."""

    async def story() -> None:
        await room.begin("alice")
        name = await room.order()
        await room.move()
        run = (await room.run_of(name)).id
        tools = ToolServer(room.engine)
        await tools.open()
        app = build(room.engine, None, NamedCallers(), tools.serve)  # type: ignore[arg-type]  # no route here asks it

        async def slow() -> AsyncIterator[bytes]:
            content = json.dumps(given).encode()
            yield content[:5]
            await room.engine.runs.stop(name, "stopped by hand")
            yield content[5:]

        near = httpx2.ASGITransport(app=app)
        try:
            async with httpx2.AsyncClient(transport=near, base_url="http://localhost") as client:
                answer = await client.post(path, content=slow(), headers={**HEADERS, RUN_HEADER: run})
        finally:
            await tools.close()
        await room.move()
        assert "run is over" in answer.text
        assert (await room.run_of(name)).said == ""
        assert await room.store.read(_said) == []

    play(story)
