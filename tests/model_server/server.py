"""A server on 127.0.0.1 that answers as the scripts say, and remembers what it was asked."""

from __future__ import annotations

import json
import re
import select
import socket
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

import patience

from . import anthropic, chat, responses
from .api import Api, Body, Event
from .script import Asked, Reply, Scenarios, Step, say, step_at
from .tools import named

APIS = (anthropic.API, responses.API, chat.API)
IN_PATH = re.compile(r"/s/([\w.-]+)(/.*)")
IN_PROMPT = re.compile(r"\bscenario:([\w.-]*\w)")
LANDED = re.compile(r"^.*\bLand c\d+: .*$", re.MULTILINE)
"""A commit of main, as `git log --oneline` shows it."""
LOOK = 0.05
"""Seconds between two looks at a gate."""
ASIDE = say("Aside.")
"""The answer to a request without tools: no turn of the work, but a title or a question by the way."""


@dataclass(slots=True)
class Request:
    """One request to a model, and what came of it."""

    at: float
    scenario: str
    asked: Asked
    body: Body
    answer: str
    """`answer`, `aside`, or what went wrong, as `Step.trouble` has it."""
    left: bool = False
    """The other side closed the connection before the answer was over."""


class ModelServer:
    """Serves in a thread of its own between `with` and its end. A listening socket can be brought from elsewhere."""

    def __init__(
        self,
        scenarios: Scenarios | None = None,
        *,
        port: int = 0,
        listener: socket.socket | None = None,
        record: Path | None = None,
    ) -> None:
        self.scenarios = dict(scenarios or {})
        self.seen: list[Request] = []
        self.news = threading.Condition()
        self.errors: list[str] = []
        """What was asked for and could not be answered: a fault of the script, or of this server."""
        self.gates: set[str] = set()
        """Those that are open."""
        self._record = record
        self._asked: Counter[tuple[str, str, int]] = Counter()
        self.http = _Http(self, listener or socket.create_server(("127.0.0.1", port)))
        self._thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.http.shutdown()
        self._thread.join()
        self.http.see_off()
        self.http.server_close()
        assert not self.errors, self.errors

    def url(self, scenario: str = "") -> str:
        """Where a CLI finds the model; without a scenario, the prompt has to name it."""
        return f"http://127.0.0.1:{self.http.server_port}" + (f"/s/{scenario}" if scenario else "")

    # ── what was asked ───────────────────────────────────────────────────────────────────────────────────────

    def requests(self, scenario: str = "") -> list[Request]:
        """All requests of a scenario, asides left out; of all scenarios without a name."""
        with self.news:
            return [each for each in self.seen if each.answer != "aside" and scenario in ("", each.scenario)]

    def wait_for(self, happened: Callable[[], Any], *, within: float = 60.0) -> bool:
        """Whether something comes true in time that depends on the requests."""
        with self.news:
            return bool(self.news.wait_for(happened, patience.seconds(within)))

    def note(self, request: Request) -> None:
        with self.news:
            self.seen.append(request)
            self.news.notify_all()
            if self._record:
                with self._record.open("a") as file:
                    about = {"scenario": request.scenario, "answer": request.answer}
                    file.write(json.dumps(about | {"body": request.body}) + "\n")

    def note_leaving(self, request: Request) -> None:
        with self.news:
            request.left = True
            self.news.notify_all()

    # ── what is answered ─────────────────────────────────────────────────────────────────────────────────────

    def choose(self, scenario: str, asked: Asked) -> tuple[Step, str]:
        """The step for a request, and what goes wrong with it this time."""
        if not asked.tools:
            return ASIDE, "aside"
        if scenario not in self.scenarios:
            raise LookupError(f"There is no scenario {scenario!r} for {asked.prompts[-1:]}")
        step = step_at(self.scenarios[scenario], asked.turn)
        for call in step.calls:
            named(call, asked)  # refuses what this CLI has no tool for, before anything is said
        counted = scenario, "" if step.in_all else asked.conversation, asked.turn
        with self.news:
            self._asked[counted] += 1
            over = step.times is not None and self._asked[counted] > step.times
        return step, "answer" if over or not step.trouble else step.trouble


class _Http(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for them

    def __init__(self, models: ModelServer, listener: socket.socket) -> None:
        super().__init__(listener.getsockname()[:2], _Conversation, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.server_port = listener.getsockname()[1]
        self.models = models
        self.guests: set[socket.socket] = set()
        self.server_activate()

    def process_request(self, request: Any, client_address: Any) -> None:
        self.guests.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.guests.discard(request)
        super().shutdown_request(request)

    def see_off(self) -> None:
        """End all connections: those that wait for an answer, and those on which nothing more is asked."""
        for guest in list(self.guests):
            with suppress(OSError):  # it has left by itself
                guest.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A CLI that is killed leaves in the middle of a sentence; anything else is a fault of ours."""
        error = sys.exception()
        if not isinstance(error, ConnectionError):
            self.models.errors.append(repr(error))


class _Conversation(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http

    def do_HEAD(self) -> None:
        self._send(200, {})

    def do_GET(self) -> None:
        """CLIs ask for lists of models and the like: there is nothing to know."""
        self._send(404, {"error": {"message": f"nothing at {self.path}"}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        found = IN_PATH.fullmatch(self.path.partition("?")[0])
        chosen, path = found.groups() if found else ("", self.path.partition("?")[0])
        for api in APIS:
            if path.endswith(api.path):
                return self._converse(api, chosen, body)
            for end, answer in api.beside.items():
                if path.endswith(end):
                    return self._send(200, answer(body))
        return self.do_GET()

    def _converse(self, api: Api, chosen: str, body: Body) -> None:
        models = self.server.models
        asked = api.read(body, {name.lower(): value for name, value in self.headers.items()})
        scenario = chosen or _named_in(asked)
        try:
            step, answer = models.choose(scenario, asked)
        except LookupError as error:
            models.errors.append(str(error))
            return self._send(400, {"error": {"type": "invalid_request_error", "message": str(error)}})
        request = Request(at=time.time(), scenario=scenario, asked=asked, body=body, answer=answer)
        models.note(request)
        try:
            self._wait(step.delay)
            while step.gate and step.gate not in models.gates:
                self._wait(LOOK)
            self._answer(api, Reply(asked=asked, step=step, id=uuid.uuid4().hex[:20]), answer)
        except ConnectionError:
            self.close_connection = True
            models.note_leaving(request)
        return None

    def _answer(self, api: Api, reply: Reply, answer: str) -> None:
        step, trouble = reply.step, answer not in {"answer", "aside"}
        if trouble and not step.midway:
            if step.fault:
                refusal = api.refuse(step)
                return self._send(refusal.status, refusal.body, refusal.headers)
            return self._break_off(api, step)
        if not reply.asked.streaming:
            return self._send(200, api.whole(reply))
        events = list(api.events(reply))
        self._head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"})
        for event in events[:1] if trouble else events:
            self._tell(event)
        if trouble:
            return self._break_off(api, step)
        return self._chunk(b"")

    def _break_off(self, api: Api, step: Step) -> None:
        """Let the step's trouble happen at this point of the answer."""
        self.close_connection = True
        if step.fault:
            self._tell(api.break_off(step))
            self._chunk(b"")
        elif step.hang:
            self._wait(None)

    def _wait(self, seconds: float | None) -> None:
        """Say nothing for a while, or until the other side leaves."""
        if select.select((self.connection,), (), (), seconds)[0]:
            raise ConnectionAbortedError("the other side has left")

    def _tell(self, event: Event) -> None:
        name = f"event: {event['type']}\n" if "type" in event else ""
        self._chunk(f"{name}data: {json.dumps(event) if event else '[DONE]'}\n\n".encode())

    def _chunk(self, content: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))

    def _send(self, status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        content = b"" if self.command == "HEAD" else json.dumps(body).encode()
        told = {"content-type": "application/json", "content-length": str(len(content))}
        self._head(status, told | dict(headers or {}))
        self.wfile.write(content)

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that the base class gives it
        """Requests are remembered, not printed."""


def _named_in(asked: Asked) -> str:
    """The scenario that a prompt names. What landed before is named like its scenario, and some CLIs tell of it."""
    found = (IN_PROMPT.search(LANDED.sub("", prompt)) for prompt in (asked.system, *asked.prompts))
    return next((each[1] for each in found if each), "")
