"""Requests that never become whole, and callers on the port, who are known only by their first request."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from starlette.requests import Request

import patience
from windlass.core.errors import Unavailable
from windlass.daemon.boot import build
from windlass.daemon.lifecycle import hang_up, listen, prepare_home
from windlass.daemon.serving import server
from windlass.daemon.serving.shares import Shares
from windlass.web.app import build as build_app
from windlass.web.authentication import KNOWN, TokenAuthenticator


@pytest.mark.parametrize("path", ["/messages", "/mcp"])
def test_a_body_that_does_not_come_is_not_waited_for(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The head is whole, and half of the body is sent; its connection is free again."""
    monkeypatch.setattr(server, "BODY_SECONDS", 0.1)
    home, shares = Path(os.environ["WINDLASS_HOME"]), Shares(100)

    async def story() -> None:
        leaving = asyncio.Event()
        async with build(home, leaving.set) as building:
            app = build_app(building.engine, building.context, building.authenticator, building.tools)
            serving = server.DaemonServer(app, listen(home), building.identify, shares)
            task = asyncio.create_task(serving.run_until(leaving, building.engine.bell.fall_silent))
            reader, writer = await asyncio.open_unix_connection(home / "daemon.sock")
            writer.write(f"POST {path} HTTP/1.1\r\nHost: windlass\r\nContent-Length: 100\r\n\r\n".encode() + b'{"body"')
            async with asyncio.timeout(patience.seconds(10)):
                assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
            writer.close()
            assert shares.held == 0
            assert building.engine.troubles.all() == []
            hang_up(home)
            leaving.set()
            await task

    prepare_home(home)
    asyncio.run(story())


def test_a_caller_on_the_port_is_counted_as_the_run_that_its_token_names() -> None:
    """And refused where that has its share already."""
    shares = Shares(16)
    known: list[str] = []

    def hold(run: str) -> None:
        shares.take(run, lambda: None)
        known.append(run)

    scope = {"type": "http", "state": {KNOWN: hold}}
    headers = [(b"host", b"localhost"), (b"authorization", b"Bearer r1.x")]
    entrance = TokenAuthenticator(lambda token: token.partition(".")[0])
    for _ in range(shares.of_a_run):
        assert entrance.caller(Request({**scope, "headers": headers})).run == "r1"
    with pytest.raises(Unavailable, match="as many as one may have"):
        entrance.caller(Request({**scope, "headers": headers}))
    assert known == ["r1"] * shares.of_a_run
