"""`windlass mcp` beside a daemon that hangs up in the middle of an answer."""

from __future__ import annotations

import os
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from mcp_stage import Place
from test_mcp_bridge import bridge

from windlass.cli.mcp_bridge.protocol import REPEATABLE

pytestmark = [
    pytest.mark.xdist_group("mcp"),
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]


class Rude(threading.Thread):
    """Takes requests as a daemon does that is killed: whole, and hangs up. From the given number on it answers."""

    def __init__(self, home: Path, *, answers: int) -> None:
        super().__init__(daemon=True)
        self.answers = answers
        self.asked: list[bytes] = []
        self.door = socket.socket(socket.AF_UNIX)
        self.door.bind(str(home / "daemon.sock"))
        self.door.listen()
        self.start()

    def run(self) -> None:
        with suppress(OSError):  # at the end
            while True:
                with self.door.accept()[0] as line:
                    self._take(line)

    def _take(self, line: socket.socket) -> None:
        given = b""
        while b"}}" not in given and not (given.startswith(b"GET ") and given.endswith(b"\r\n\r\n")):
            given += line.recv(65536)
        if given.startswith(b"GET /messages/wait?timeout=0"):
            self._say(line, b'{"items":[],"since":"m41"}')
            return
        self.asked.append(given)
        if len(self.asked) >= self.answers:
            self._say(line, b'{"jsonrpc":"2.0","id":7,"result":{"done":true}}')

    def _say(self, line: socket.socket, body: bytes) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        line.sendall(head.encode() + body)

    @property
    def keys(self) -> set[bytes]:
        """The names that the requests had."""
        found = (row for each in self.asked for row in each.split(b"\r\n"))
        return {row for row in found if row.startswith(b"Windlass-Request: ")}


@pytest.fixture
def rude_home() -> Iterator[Path]:
    folder = Path(os.environ["WINDLASS_HOME"])
    folder.mkdir(parents=True)
    yield folder


class TestHangingUp:
    @pytest.mark.parametrize("tool", ["document_append", "document_write", "channel_read", "new_one"])
    def test_what_may_have_been_done_is_not_done_again(self, here: Place, rude_home: Path, tool: str) -> None:
        """Its client is told, and can look."""
        daemon = Rude(rude_home, answers=2)
        with bridge(here, WINDLASS_HOME=str(rude_home), WINDLASS_RUN="r1") as lines:
            lines.ask(7, "tools/call", name=tool, arguments={"x": {}})
            assert "went away" in lines.read()["error"]["message"]
        daemon.door.close()
        assert len(daemon.asked) == 1

    @pytest.mark.parametrize("tool", sorted(REPEATABLE))
    def test_what_counts_once_is_asked_again_under_the_same_name(self, here: Place, rude_home: Path, tool: str) -> None:
        """By which the daemon knows a message again that it has."""
        daemon = Rude(rude_home, answers=3)
        with bridge(here, WINDLASS_HOME=str(rude_home), WINDLASS_RUN="r1") as lines:
            lines.ask(7, "tools/call", name=tool, arguments={"x": {}})
            assert lines.read() == {"jsonrpc": "2.0", "id": 7, "result": {"done": True}}
        daemon.door.close()
        assert (len(daemon.asked), len(daemon.keys)) == (3, 1)

    def test_a_wait_is_asked_again_from_where_it_began(self, here: Place, rude_home: Path) -> None:
        """Where it says no place itself; else what was waited for could come in between."""
        daemon = Rude(rude_home, answers=2)
        with bridge(here, WINDLASS_HOME=str(rude_home), WINDLASS_RUN="r1") as lines:
            for given in ({"channel": "main"}, {"since": "m7"}):
                lines.call(7, "channel_wait", **given)
                lines.read()
            lines.ask(7, "tools/call", name="channel_wait", arguments={})
            lines.read()
        daemon.door.close()
        places = [re.findall(rb'"since": "(m\d+)"', each) for each in daemon.asked]
        assert places == [[b"m41"], [b"m41"], [b"m7"], [b"m41"]]
