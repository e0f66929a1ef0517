"""`windlass mcp` in the older era, where daemons follow one another and each knows only the sessions begun with it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
from fake_daemon import Conversation, FakeDaemon
from typing_room import WITHIN, Keyboard

from windlass.cli.mcp_bridge.command import LAST_ANSWERS, PATIENCE

INBOX = "inbox://me"


class Session(Conversation):
    """The answer of one of the daemons."""

    server: Daemons

    def do_DELETE(self) -> None:
        self.answer("DELETE", {"method": "goodbye"})

    def answer(self, method: str, body: Any) -> None:
        if method == "GET":
            self.news()
            return
        daemon, asked = self.server, body["method"]
        if daemon.hangs:
            self.close_connection = daemon.over.wait(2 * WITHIN)
            return
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
        self.hangs = False

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

    def close(self) -> None:
        """It has said all."""
        assert self.process.stdin
        self.process.stdin.close()

    def read(self) -> Any:
        return json.loads(self.lines.get(timeout=WITHIN))


PROGRAM = (
    "from windlass.cli import main; from windlass.cli.mcp_bridge import command; command.PATIENCE = {}; main.run()"
)


@contextmanager
def client(tmp_path: Path, *, patience: float = PATIENCE) -> Iterator[Client]:
    """One that has begun its session."""
    environment = Keyboard(tmp_path / "home", tmp_path).environment | {"WINDLASS_RUN": "r1"}
    command = (sys.executable, "-c", PROGRAM.format(patience), "mcp")
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, text=True, cwd=tmp_path, env=environment, stdin=pipe, stdout=pipe, stderr=pipe
    ) as process:
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
    """A request that no daemon has received goes to the next one, and no subscription is lost."""
    with client(tmp_path) as speaker:
        speaker.ask("ear", "resources/subscribe", uri=INBOX)
        assert speaker.read()["id"] == "ear"
        daemons.done.clear()
        daemons.restart()
        daemons.deaths = [death, death]
        for word in ("one", "two"):
            speaker.send(word, tool)
        answers = [speaker.read() for _ in range(2)]
    assert [(answer["id"], answer.get("result")) for answer in answers] == [("one", {}), ("two", {})]
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


def test_what_waits_for_its_turn_at_the_end_waits_for_the_next_daemon(tmp_path: Path) -> None:
    """Also longer than answers may take: nothing is dropped while there is patience."""
    with Daemons(tmp_path / "home"), client(tmp_path) as speaker:
        socket = tmp_path / "home/daemon.sock"
        socket.rename(tmp_path / "home/left")
        for word in ("one", "two"):
            speaker.send(word, "channel_send")
        speaker.close()
        with pytest.raises(subprocess.TimeoutExpired):
            speaker.process.wait(3 * LAST_ANSWERS)
        with Daemons(tmp_path / "home") as daemons:
            assert [speaker.read()["id"] for _ in range(2)] == ["one", "two"]
            assert speaker.process.wait(WITHIN) == 0
    assert daemons.calls() == ["one", "two"]


def test_what_could_not_be_said_before_the_end_is_named(tmp_path: Path, daemons: Daemons) -> None:
    """A daemon that hangs holds nobody for ever; the exit code and the words tell that something is missing."""
    with client(tmp_path, patience=0.5) as speaker:
        daemons.hangs = True
        for word in ("one", "two", "three"):
            speaker.send(word, "channel_send")
        speaker.close()
        assert speaker.process.wait(WITHIN) == 6
        assert speaker.process.stderr
        said = speaker.process.stderr.read()
    assert said == (
        "windlass: The daemon did not answer in time, and may not have heard channel_send (id one); "
        "not sent: channel_send (id two), channel_send (id three).\n"
        "Look with `windlass peek` what was heard, and say the rest again.\n"
    )
    assert daemons.calls() == []
