"""`windlass mcp` in the older era, where daemons follow one another and each knows only the sessions begun with it."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
from fake_daemon import Conversation, FakeDaemon
from typing_room import WITHIN, Keyboard

INBOX = "inbox://me"


class Session(Conversation):
    """What one of the daemons says."""

    server: Daemons

    def answer(self, method: str, body: Any) -> None:
        if method == "GET":
            self.news()
            return
        daemon, asked = self.server, body["method"]
        if daemon.deaths and daemon.deaths[0] == asked:
            daemon.deaths.pop(0)
            daemon.restart()
            self.close_connection = True
        elif asked == "initialize":
            self.reply({"protocolVersion": "2025-06-18"}, body)
        elif not self.known:
            self.whole(404, {})
        elif "id" in body:
            daemon.done.append((asked, body["params"]))
            self.reply({}, body)
        else:
            self.whole(202, b"")

    @property
    def known(self) -> bool:
        return self.headers.get("Mcp-Session-Id") == self.server.session

    def reply(self, result: Any, body: Any) -> None:
        content = json.dumps({"jsonrpc": "2.0", "id": body["id"], "result": result}).encode()
        self.send_response(200)
        self.send_header("Mcp-Session-Id", self.server.session)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.close_connection = True

    def news(self) -> None:
        """The stream on which the client hears of mail, for as long as this daemon lives."""
        if not self.known:
            self.whole(404, {})
            return
        over = self.server.over
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        said = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": self.server.session}}
        self.wfile.write(f"data: {json.dumps(said)}\n\n".encode())
        self.close_connection = over.wait(WITHIN)


class Daemons(FakeDaemon):
    """One after the other in the same home."""

    def __init__(self, home: Path) -> None:
        super().__init__(home, Session)
        self.number = 1
        self.deaths: list[str] = []
        """At which requests one dies next, without an answer."""
        self.done: list[tuple[str, Any]] = []
        self.over = threading.Event()

    @property
    def session(self) -> str:
        return f"s{self.number}"

    def restart(self) -> None:
        self.number += 1
        over, self.over = self.over, threading.Event()
        over.set()

    def calls(self) -> list[str]:
        return [params["arguments"]["message"] for asked, params in self.done if asked == "tools/call"]


@pytest.fixture
def daemons(tmp_path: Path) -> Iterator[Daemons]:
    made = Daemons(tmp_path / "home")
    with made:
        yield made
        made.over.set()


class Client:
    """Speaks to a bridge inside a run, line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: Queue[str] = Queue()
        threading.Thread(target=self._hear, daemon=True).start()

    def _hear(self) -> None:
        for line in self.process.stdout or ():
            self.lines.put(line)

    def ask(self, key: Any, method: str, **params: Any) -> None:
        self._write({"jsonrpc": "2.0", "id": key, "method": method, "params": params})

    def tell(self, method: str) -> None:
        self._write({"jsonrpc": "2.0", "method": method})

    def send(self, key: Any, tool: str) -> None:
        self.ask(key, "tools/call", name=tool, arguments={"message": key})

    def _write(self, message: Any) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def read(self) -> Any:
        return json.loads(self.lines.get(timeout=WITHIN))


@contextmanager
def client(tmp_path: Path) -> Iterator[Client]:
    """One that has begun its session."""
    keyboard = Keyboard(tmp_path / "home", tmp_path)
    with keyboard.open("mcp", stdin=subprocess.PIPE, WINDLASS_RUN="r1") as process:
        try:
            made = Client(process)
            made.ask("hello", "initialize", protocolVersion="2025-06-18")
            assert made.read()["id"] == "hello"
            yield made
        finally:
            process.kill()


@pytest.mark.parametrize("tool", ["channel_send", "document_append"])
@pytest.mark.parametrize("death", ["initialize", "notifications/initialized", "resources/subscribe"])
def test_all_is_said_in_order_though_daemons_die_while_the_session_is_renewed(
    tmp_path: Path, daemons: Daemons, tool: str, death: str
) -> None:
    """What no daemon has heard is said to the next, whatever it is; and subscriptions are not lost on the way."""
    with client(tmp_path) as speaker:
        speaker.ask("ear", "resources/subscribe", uri=INBOX)
        assert speaker.read()["id"] == "ear"
        daemons.done.clear()
        daemons.restart()
        daemons.deaths = [death, death]
        for each in ("one", "two"):
            speaker.send(each, tool)
        answers = [speaker.read() for _ in range(2)]
    assert [(each["id"], each.get("result")) for each in answers] == [("one", {}), ("two", {})]
    assert daemons.calls() == ["one", "two"]
    assert ("resources/subscribe", {"uri": INBOX}) in daemons.done


def test_news_are_heard_on_though_daemons_die_while_the_session_is_renewed(tmp_path: Path, daemons: Daemons) -> None:
    """Also by a client that asks nothing meanwhile."""
    with client(tmp_path) as listener:
        listener.tell("notifications/initialized")
        assert listener.read()["params"]["data"] == "s1"
        daemons.deaths = ["initialize"]
        daemons.restart()
        assert listener.read()["params"]["data"] == "s3"
