"""A daemon that only repeats what a test taught it: for the client's output and errors."""

from __future__ import annotations

import json
import os
import socketserver
import threading
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Self

import patience

STATUS = {"NotFound": 404, "Conflict": 409, "NotAllowed": 403, "BadInput": 400, "Unavailable": 503, "TimedOut": 504}


class Refusal:
    """An error as the daemon sends it."""

    def __init__(self, kind: str, message: str, hint: str = "") -> None:
        self.status = STATUS[kind]
        self.body = {"error": {"kind": kind, "message": message, "hint": hint}}


class Stream:
    """Lines sent one by one, each as a chunk of its own; then the end, unless it is cut."""

    def __init__(self, lines: Iterable[str], *, cut: bool = False) -> None:
        self.lines = lines
        self.cut = cut

    @classmethod
    def of(cls, *values: Any, cut: bool = False) -> Stream:
        return cls((json.dumps(value) + "\n" for value in values), cut=cut)


class Conversation(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeDaemon

    def do_GET(self) -> None:
        self.answer("GET", None)

    def do_POST(self) -> None:
        self.answer("POST", json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def answer(self, method: str, body: Any) -> None:
        path, _, query = self.path.partition("?")
        self.server.asked.append((method, path, query, body))
        if self.server.cut:
            self.server.cut -= 1
            self.close_connection = True
            return
        answer = self.server.answers.get(f"{method} {path}", Refusal("NotFound", f"Nothing is at {path}."))
        if callable(answer):
            answer = answer(query)
        if isinstance(answer, Stream):
            self.stream(answer)
        elif isinstance(answer, Refusal):
            self.whole(answer.status, answer.body)
        else:
            self.whole(200, answer)

    def whole(self, status: int, value: Any) -> None:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def stream(self, stream: Stream) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for line in stream.lines:
            content = line.encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(content), content))
        if not stream.cut:
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True

    def address_string(self) -> str:
        return "client"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that the standard library gave it
        """Tests read no log."""


class FakeDaemon(socketserver.ThreadingUnixStreamServer):
    """Serves taught answers on a home's socket, and remembers what it was asked."""

    daemon_threads = True

    def __init__(self, home: Path, conversation: type[Conversation] = Conversation) -> None:
        home.mkdir(exist_ok=True)
        self.answers: dict[str, Any] = {}
        self.asked: list[tuple[str, str, str, Any]] = []
        self.cut = 0
        """How many more requests end without an answer, as if the daemon died."""
        self.folder = os.open(home, os.O_PATH | os.O_DIRECTORY)
        super().__init__(f"/proc/self/fd/{self.folder}/daemon.sock", conversation)  # the home's path may be long

    def teach(self, request: str, answer: Any | Callable[[str], Any]) -> None:
        self.answers[request] = answer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that left early is no fault."""

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()
        os.close(self.folder)


def events(*numbers: int, end: threading.Event | None = None) -> Iterator[str]:
    """Server-sent events with these numbers; then silence until `end`."""
    for number in numbers:
        event = {"seq": number, "time": 1.0, "kind": "run.started", "subject": "r1"}
        yield f"id: {number}\ndata: {json.dumps(event)}\n\n"
    if end:
        end.wait(patience.seconds(20))
