"""`windlass mcp`: a bridge from standard input and output to the daemon, for programs that speak MCP over them.

It knows no tool: each line is sent on, and each answer written. What it adds is that its client never notices that the
daemon was restarted: a session is begun anew, what only looks or counts once is asked again, and streams are followed
on. Light to start, so it does without the SDK.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
from binascii import b2a_base64
from collections.abc import Iterator
from typing import Any

import click

from windlass.cli.client import Client, here
from windlass.cli.command import command
from windlass.cli.wire import Gone, Wire, dial, quote
from windlass.core.errors import Unavailable, WindlassError

LARGEST = 4_000_000
"""Bytes of one message that the daemon takes."""
PATIENCE = 60.0
"""Seconds that a run waits for a daemon that is being restarted."""
LAST_ANSWERS = 2.0
"""Seconds that answers may still take when our client has said all."""
PAUSE = 0.2
FAILED, BAD_JSON, BAD_REQUEST = -32000, -32700, -32600
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""What of a request stands in its head, too, in the newer era."""
REPEATABLE = frozenset(
    "channel_send channel_peek channel_wait inbox_read inbox_ack document_list document_read agents_list "
    "complete".split()
)
"""Tools that may be called again when nobody knows whether the first call arrived."""

Message = dict[str, Any]


@command("mcp", "windlass mcp")
@click.pass_obj
def mcp_command(daemon: Client) -> None:
    """Speak MCP on standard input and output: channel, inbox, documents and agents as tools.

    Agents are given this by themselves. It ends with its input.
    """
    gc.enable()  # this one stays
    Bridge(daemon).run()


class Lost(Unavailable):
    """The session is not known any more."""


class Bridge:
    """One client on standard input and output, and the daemon."""

    def __init__(self, daemon: Client) -> None:
        self.daemon = daemon
        self.inside = bool(os.environ.get("WINDLASS_RUN"))
        self.place = quote(here())
        self.greeting: Message | None = None
        """The client's own handshake, in the older era."""
        self.session = ""
        self.version = ""
        self.watched: dict[str, None] = {}
        """What the client has subscribed to, in the older era."""
        self.following = False
        self.open: dict[str, Wire] = {}
        """Requests of the newer era that wait for their answer, by id."""
        self._writing = threading.Lock()
        self._renewing = threading.Lock()

    # ── lines in, lines out ──────────────────────────────────────────────────────────────────────────────────

    def run(self) -> None:
        """Send on every line until there is none."""
        asking: list[threading.Thread] = []
        for line in iter(sys.stdin.buffer.readline, b""):
            message = self._parsed(line)
            if message is None:
                continue
            if "method" in message and "id" in message and message["method"] != "initialize":
                asking = [each for each in asking if each.is_alive()]
                asking.append(threading.Thread(target=self._answer, args=(message,), daemon=True))
                asking[-1].start()
            else:
                self._answer(message)
        until = time.monotonic() + LAST_ANSWERS
        for each in asking:
            each.join(max(0.0, until - time.monotonic()))
        self._leave()

    def _parsed(self, line: bytes) -> Message | None:
        """The message in a line; what is none is answered at once."""
        message, code, words = _read(line)
        if words:
            key = message.get("id") if message else None
            self._refuse(key if isinstance(key, str | int | float) else None, code, words)
        return None if words else message

    def _refuse(self, key: Any, code: int, words: str) -> None:
        self._write({"jsonrpc": "2.0", "id": key, "error": {"code": code, "message": words}})

    def _write(self, message: Any) -> None:
        line = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"
        with self._writing:
            try:
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()
            except OSError:
                os._exit(0)  # nobody reads us any more

    # ── one message ──────────────────────────────────────────────────────────────────────────────────────────

    def _answer(self, message: Message) -> None:
        """Send a message on, and write what is answered. Whatever goes wrong is an answer, too."""
        try:
            self._exchange(message)
        except BrokenPipeError:
            os._exit(0)
        except (WindlassError, OSError, ValueError) as error:
            if "id" in message and "method" in message:
                hint = getattr(error, "hint", "")
                self._refuse(message["id"], FAILED, f"{error} {hint}".strip())

    def _exchange(self, message: Message) -> None:
        method = message.get("method")
        if method == "notifications/cancelled" and self._hang_up(message):
            return
        if method == "initialize":
            self.greeting, self.session, self.version = message, "", ""
        self._until_answered(message)
        if method == "notifications/initialized" and self.session and not self.following:
            self.following = True
            threading.Thread(target=self._follow, daemon=True).start()
        self._remember(message)

    def _until_answered(self, message: Message) -> None:
        """Ask, and where that is safe ask again: a daemon may leave at any time, and the next one knows no session."""
        key, until, patient = os.urandom(12).hex(), time.monotonic() + PATIENCE, True
        while True:
            session = self.session
            try:
                return self._ask(message, key)
            except Lost:
                if time.monotonic() > until or not self._renewed(session):
                    raise
            except Gone:
                if not _may_repeat(message) or time.monotonic() > until:
                    raise
                if _is_stream(message):
                    patient = self._wait_for_daemon()
                    self._say_updated(_wanted(message), message["id"])
                    until = time.monotonic() + PATIENCE
                elif patient:
                    time.sleep(PAUSE)

    def _ask(self, message: Message, key: str) -> None:
        """One try. Raises Lost for a session that is gone, Gone where the answer broke off."""
        session = "" if _era(message) else self.session
        wire = self._wire("POST", json.dumps(message).encode(), self._headers(message) | {"Windlass-Request": key})
        name = json.dumps(message["id"]) if _era(message) and "id" in message else ""
        if name:
            self.open[name] = wire
        try:
            status, headers = wire.head()
            if status == 404 and session:
                raise Lost("The session is gone.")
            if message.get("method") == "initialize":
                self.session = headers.get("mcp-session-id", "")
            self._pass_on(message, status, headers, wire)
        except Gone:
            if not name or name in self.open:  # else we have hung up ourselves
                raise
        finally:
            wire.line.close()
            if name:
                self.open.pop(name, None)

    def _pass_on(self, message: Message, status: int, headers: dict[str, str], wire: Wire) -> None:
        answered = "id" not in message or "method" not in message
        for each in _values(headers, wire.body(headers)):
            if "jsonrpc" not in each:
                raise Unavailable(_refusal(each, status))
            if message.get("method") == "initialize":
                self.version = each.get("result", {}).get("protocolVersion", "")
            if "method" in each or not answered:
                self._write(each if "method" in each else each | {"id": message["id"]})
            answered = answered or "method" not in each
        if not answered:
            raise Gone("The daemon went away before it had answered.", hint="Look whether it was done, or ask again.")

    def _remember(self, message: Message) -> None:
        uri = str(_params(message).get("uri"))
        if message.get("method") == "resources/subscribe":
            self.watched[uri] = None
        elif message.get("method") == "resources/unsubscribe":
            self.watched.pop(uri, None)

    def _hang_up(self, message: Message) -> bool:
        """In the newer era a request is cancelled by hanging up."""
        wire = self.open.pop(json.dumps(_params(message).get("requestId")), None)
        if wire is not None:
            wire.line.shutdown(2)
        return wire is not None

    # ── the daemon ───────────────────────────────────────────────────────────────────────────────────────────

    def _wire(self, method: str, body: bytes, headers: dict[str, str], *, start: bool = True) -> Wire:
        line = self._dialled() if start else dial(self.daemon.home)
        wire = Wire(line, waiting=_silent, outlet=sys.stdout.fileno())
        wire.send(method, "/mcp", body, headers)
        return wire

    def _dialled(self) -> Any:
        """A line to the daemon. A run waits for one that is being restarted, a person's starts it."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return dial(self.daemon.home)
            except (FileNotFoundError, ConnectionRefusedError) as error:
                if time.monotonic() > until:
                    raise Unavailable("The daemon is not running.", hint="Try again later.") from error
            if not self.inside and self.daemon.start:
                self.daemon.start(self.daemon.home)
            else:
                time.sleep(PAUSE)

    def _wait_for_daemon(self) -> bool:
        """Until there is one again: for streams none is started, as a person may have stopped it."""
        while True:
            try:
                dial(self.daemon.home).close()
                return True
            except OSError:
                time.sleep(5 * PAUSE)

    def _headers(self, message: Message) -> dict[str, str]:
        found = {"Accept": "application/json, text/event-stream", "Windlass-Path": self.place}
        era, method = _era(message), message.get("method")
        if era and isinstance(method, str):
            found |= {"Mcp-Protocol-Version": era, "Mcp-Method": _encoded(method)}
            name = _params(message).get(NAMED.get(method, ""))
            return found | ({"Mcp-Name": _encoded(name)} if isinstance(name, str) else {})
        if method != "initialize" and self.session:
            found |= {"Mcp-Session-Id": self.session, "Mcp-Protocol-Version": self.version}
        return found

    def _renewed(self, lost: str) -> bool:
        """Begin the session anew, as the client did; whoever comes second finds it done."""
        with self._renewing:
            if self.session != lost:
                return True
            if self.greeting is None:
                return False
            wire = self._wire("POST", json.dumps(self.greeting).encode(), self._headers(self.greeting))
            _, headers = wire.head()
            list(wire.body(headers))
            wire.line.close()
            self.session = headers.get("mcp-session-id", "")
            self._tell("notifications/initialized")
            for number, uri in enumerate(self.watched):
                self._tell("resources/subscribe", key=f"again-{number}", uri=uri)
        self._say_updated(list(self.watched))
        return bool(self.session)

    def _tell(self, method: str, *, key: str = "", **params: str) -> None:
        """Say something of our own, and let nobody hear the answer."""
        message = {"jsonrpc": "2.0", "method": method} | ({"id": key, "params": params} if key else {})
        wire = self._wire("POST", json.dumps(message).encode(), self._headers(message))
        list(wire.body(wire.head()[1]))
        wire.line.close()

    def _say_updated(self, uris: list[str], subscription: Any = None) -> None:
        """While we were cut off, something may have come: let the client look."""
        meta = {"_meta": {SUBSCRIPTION_KEY: subscription}} if subscription is not None else {}
        for uri in uris:
            self._write({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri, **meta}})

    def _follow(self) -> None:
        """What the daemon says by itself, in the older era."""
        while True:
            session = self.session
            headers = {"Accept": "text/event-stream", "Mcp-Session-Id": session, "Mcp-Protocol-Version": self.version}
            try:
                wire = self._wire("GET", b"", headers, start=False)
                status, head = wire.head()
                if status == 404:
                    self._renewed(session)
                elif status >= 400:
                    return
                else:
                    for each in _values(head, wire.body(head)):
                        self._write(each)
                wire.line.close()
            except BrokenPipeError:
                os._exit(0)
            except (WindlassError, OSError, ValueError):
                self._wait_for_daemon()
            time.sleep(PAUSE)

    def _leave(self) -> None:
        """Say goodbye, if there is a session and someone to say it to."""
        if not self.session:
            return
        try:
            self._wire("DELETE", b"", {"Mcp-Session-Id": self.session}, start=False).head()
        except (WindlassError, OSError, ValueError):
            return


def _read(line: bytes) -> tuple[Message | None, int, str]:
    """The message in a line, if there is one; and what is wrong with it, if something is."""
    if not line.strip():
        return None, 0, ""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None, BAD_JSON, "That line is no JSON."
    if not isinstance(message, dict):
        return None, BAD_REQUEST, "A line must be one message, a JSON object."
    return message, BAD_REQUEST, f"The message has more than {LARGEST} bytes." if len(line) > LARGEST else ""


def _era(message: Message) -> str:
    """The version that a request of the newer era carries in itself; nothing in the older."""
    meta = _params(message).get("_meta")
    version = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
    return version if isinstance(version, str) and version.isascii() and version.isprintable() else ""


def _params(message: Message) -> Message:
    found = message.get("params")
    return found if isinstance(found, dict) else {}


def _is_stream(message: Message) -> bool:
    return message.get("method") == "subscriptions/listen"


def _wanted(message: Message) -> list[str]:
    """What a request to listen asks for."""
    wanted = _params(message).get("notifications")
    uris = wanted.get("resourceSubscriptions") if isinstance(wanted, dict) else None
    return [each for each in uris if isinstance(each, str)] if isinstance(uris, list) else []


def _may_repeat(message: Message) -> bool:
    return message.get("method") != "tools/call" or _params(message).get("name") in REPEATABLE


def _encoded(value: str) -> str:
    """A text as a header may carry it."""
    if value.isascii() and value.isprintable() and value == value.strip() and not value.startswith("=?base64?"):
        return value
    return f"=?base64?{b2a_base64(value.encode('utf-8', 'surrogatepass'), newline=False).decode()}?="


def _refusal(value: Message, status: int) -> str:
    """What the daemon said no with, in its own words."""
    said = value.get("error")
    if isinstance(said, dict):
        return f"{said.get('message', '')} {said.get('hint', '')}".strip()
    return f"The daemon answered {status} and did not say why."


def _values(headers: dict[str, str], pieces: Iterator[bytes]) -> Iterator[Message]:
    """The messages of an answer: one, or as many as a stream has."""
    if headers.get("content-type", "").startswith("text/event-stream"):
        yield from _events(pieces)
        return
    body = b"".join(pieces)
    value = json.loads(body) if body.strip() else None
    if isinstance(value, dict):
        yield value


def _events(pieces: Iterator[bytes]) -> Iterator[Message]:
    rest, said = b"", []
    for piece in pieces:
        *lines, rest = (rest + piece).replace(b"\r\n", b"\n").split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                said.append(line[5:].removeprefix(b" "))
            elif not line and said:
                text, said = b"\n".join(said), []
                if text.strip():
                    yield json.loads(text)


def _silent(_seconds: float) -> None:
    """A stream may be quiet for long."""
