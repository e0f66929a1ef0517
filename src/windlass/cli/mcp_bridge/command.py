"""`windlass mcp`: a bridge from standard input and output to the daemon, for programs that speak MCP over them.

The bridge forwards each line, and writes each answer. Its client never notices that the daemon was restarted: the
bridge begins a new session, repeats requests that are safe to repeat, and follows streams again. It sends requests that
change something one by one, in the order of the lines. It does without the SDK, so that it starts fast.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import click

from windlass.cli.arguments import command
from windlass.cli.connection.client import Client, frozen_notice, here
from windlass.cli.connection.http import Connection, Gone, dial, quote
from windlass.cli.mcp_bridge import protocol
from windlass.cli.mcp_bridge.ordered import Turns
from windlass.cli.mcp_bridge.protocol import Message
from windlass.core.errors import BadInput, Unavailable, WindlassError

PATIENCE = 60.0
"""Seconds that a run waits for a daemon that is being restarted."""
LAST_ANSWERS = 2.0
"""Seconds that answers may still take after the end of our input."""
PAUSE = 0.2
NOW = 0.0
"""A deadline in the past: try once, wait for nothing, and start no daemon."""
FAILED = -32000
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Which parameter of a request is repeated in its headers, in the newer era."""


@command("mcp", "windlass mcp")
@click.pass_obj
def mcp_command(daemon: Client) -> None:
    """Speak MCP on standard input and output: channel, inbox, documents and agents as tools.

    Agents are given this by themselves. It ends with its input.
    """
    gc.enable()  # this command runs long
    Bridge(daemon).run()


class SessionLost(Unavailable):
    """The daemon does not know the session any more."""


class Bridge:
    """Forwards messages between one client, on standard input and output, and the daemon."""

    def __init__(self, daemon: Client) -> None:
        self.daemon = daemon
        self.inside = bool(os.environ.get("WINDLASS_RUN"))
        self.place = quote(here())
        self.where = "" if self.inside else f"&path={self.place}"
        self.greeting: Message | None = None
        """The client's own handshake, in the older era."""
        self.session = ""
        self.version = ""
        self.watched: dict[str, None] = {}
        """The URIs that the client has subscribed to, in the older era."""
        self.following: threading.Event | None = None
        """Set when the stream of notifications is open, in the older era."""
        self.open: dict[str, Connection] = {}
        """Requests of the newer era without an answer yet, by id."""
        self.turns = Turns(self._answer)
        self._writing = threading.Lock()
        self._renewing = threading.Lock()

    # ── lines in, lines out ──────────────────────────────────────────────────────────────────────────────────

    def run(self) -> None:
        """Forward every line until the input ends."""
        asking: list[threading.Thread] = []
        self.turns.start()
        for line in iter(sys.stdin.buffer.readline, b""):
            message = self._parsed(line)
            if message is None:
                continue
            until = time.monotonic() + PATIENCE
            if protocol.may_change(message):
                self.turns.add(message, until)
            elif "method" in message and "id" in message and message["method"] != "initialize":
                asking = [thread for thread in asking if thread.is_alive()]
                asking.append(threading.Thread(target=self._answer, args=(message, until), daemon=True))
                asking[-1].start()
            else:
                self._answer(message, until)
        left = self.turns.finish(LAST_ANSWERS)
        until = time.monotonic() + LAST_ANSWERS
        for thread in asking:
            thread.join(max(0.0, until - time.monotonic()))
        self._leave()
        if left:
            hint = "Look with `windlass peek` what was heard, and say the rest again."
            raise Unavailable(protocol.unsaid(left), hint=hint)

    def _parsed(self, line: bytes) -> Message | None:
        """The message in a line; a bad line is answered at once."""
        message, code, words = protocol.read_line(line)
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

    def _answer(self, message: Message, until: float) -> None:
        """Forward a message, and write its answer. A failure becomes an answer, too."""
        try:
            self._exchange(message, until)
        except BrokenPipeError:
            os._exit(0)
        except Exception as error:  # noqa: BLE001 - one that can't be served holds up none that come after it
            if "id" in message and "method" in message:
                hint = getattr(error, "hint", "")
                self._refuse(message["id"], FAILED, f"{error} {hint}".strip())

    def _exchange(self, message: Message, until: float) -> None:
        method = message.get("method")
        if method == "notifications/cancelled" and self._cancel(protocol.params(message).get("requestId")):
            return
        if method == "initialize":
            self.greeting, self.session, self.version = message, "", ""
        elif self.greeting is None and "id" in message and isinstance(method, str) and not protocol.era(message):
            raise BadInput(f"`initialize` comes first: send it before {method[:80]!r}, as every MCP client does.")
        self._until_answered(message, until)
        if method == "notifications/initialized" and self.session and self.following is None:
            self.following = threading.Event()
            threading.Thread(target=self._follow, args=(self.following,), daemon=True).start()
            self.following.wait(LAST_ANSWERS)  # so that no notification of the next subscription is missed

    def _until_answered(self, message: Message, until: float) -> None:
        """Ask, and repeat it where that is safe: a daemon may leave at any time, and the next one knows no session."""
        key, again = os.urandom(12).hex(), False
        while True:
            session = self.session
            try:
                message = self._with_since(message)
                return self._ask(message, key, until, again=again)
            except SessionLost:
                if time.monotonic() > until or not self._renewed(session, until):
                    raise
            except Gone:
                if not protocol.may_repeat(message) or time.monotonic() > until:
                    raise
                if protocol.is_stream(message):
                    self._wait_for_daemon()
                    again, until = True, time.monotonic() + PATIENCE
                time.sleep(PAUSE)

    def _with_since(self, message: Message) -> Message:
        """Add the newest message's id to a wait that begins now, so that a repeated wait misses nothing."""
        if not protocol.waits_from_now(message):
            return message
        connection = self._request("GET", b"", {}, target=f"/messages/wait?timeout=0{self.where}")
        try:
            status, headers = connection.head()
            if status != 200:
                return message  # its own answer will say what is wrong
            since = json.loads(b"".join(connection.body(headers)))["since"]
        finally:
            connection.socket.close()
        return protocol.with_since(message, since)

    def _ask(self, message: Message, key: str, until: float, *, again: bool) -> None:
        """Ask once. Raises SessionLost if the daemon does not know the session, Gone if the answer broke off."""
        session = "" if protocol.era(message) else self.session
        headers = self._headers(message) | {"Windlass-Request": key}
        socket = self._dial(
            until if protocol.may_change(message) else None
        )  # a long wait may meet a restart at its end
        connection = self._request("POST", json.dumps(message).encode(), headers, socket=socket)
        name = json.dumps(message["id"]) if protocol.era(message) and "id" in message else ""
        if name:
            self.open[name] = connection
        try:
            status, headers = connection.head()
            if status == 404 and session:
                raise SessionLost("The session is gone.")
            if message.get("method") == "initialize":
                self.session = headers.get("mcp-session-id", "")
            self._pass_on(message, status, protocol.values(headers, connection.body(headers)), again=again)
        except Gone:
            if not name or name in self.open:  # else it was cancelled
                raise
        finally:
            connection.socket.close()
            if name:
                self.open.pop(name, None)

    def _pass_on(self, message: Message, status: int, answers: Iterator[Message], *, again: bool) -> None:
        for answer in answers:
            if "jsonrpc" not in answer:
                raise Unavailable(protocol.refusal(answer, status))
            if "method" in answer:
                self._write(answer)
                if again and answer["method"] == ACKNOWLEDGED:
                    self._say_updated(protocol.wanted(message), message["id"])
                continue
            self._finish(message, answer)
            return  # it is answered, even if the stream breaks off now
        if "id" in message and "method" in message:
            raise Gone("The daemon went away before it had answered.", hint="Look whether it was done, or ask again.")

    def _finish(self, message: Message, answer: Message) -> None:
        if message.get("method") == "initialize":
            result = answer.get("result")
            self.version = str(result.get("protocolVersion", "")) if isinstance(result, dict) else ""
        if "id" in message and "method" in message:
            if "result" in answer:
                self._remember(message)
            self._write(answer | {"id": message["id"]})

    def _remember(self, message: Message) -> None:
        uri = str(protocol.params(message).get("uri"))
        if message.get("method") == "resources/subscribe":
            self.watched[uri] = None
        elif message.get("method") == "resources/unsubscribe":
            self.watched.pop(uri, None)

    def _cancel(self, key: object) -> bool:
        """Cancel a request of the newer era by closing its connection, or one that was not sent by dropping it."""
        connection = self.open.pop(json.dumps(key), None)
        if connection is None:
            return self.turns.drop(key)
        connection.socket.shutdown(2)
        return True

    # ── the daemon ───────────────────────────────────────────────────────────────────────────────────────────

    def _request(
        self, method: str, body: bytes, headers: dict[str, str], *, socket: Any = None, target: str = "/mcp"
    ) -> Connection:
        line, silent = socket or self._dial(), lambda _seconds: None
        notice = frozen_notice(self.daemon.home)
        connection = Connection(line, notice, waiting=silent, output=sys.stdout.fileno())
        connection.send(method, target, body, headers)
        return connection

    def _dial(self, until: float | None = None) -> Any:
        """Connect to the daemon. Inside a run, wait for one that is being restarted; elsewhere, start it."""
        until = time.monotonic() + PATIENCE if until is None else until
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

    def _wait_for_daemon(self) -> None:
        """Wait for a daemon; for streams none is started, because a person may have stopped it."""
        while True:
            try:
                return dial(self.daemon.home).close()
            except OSError:
                time.sleep(5 * PAUSE)

    def _headers(self, message: Message, session: str = "") -> dict[str, str]:
        found = {"Accept": "application/json, text/event-stream", "Windlass-Path": self.place}
        version, method = protocol.era(message), message.get("method")
        if version and isinstance(method, str):
            found |= {"Mcp-Protocol-Version": version, "Mcp-Method": protocol.encoded(method)}
            name = protocol.params(message).get(NAMED.get(method, ""))
            return found | ({"Mcp-Name": protocol.encoded(name)} if isinstance(name, str) else {})
        session = session or self.session
        if method != "initialize" and session:
            found |= {"Mcp-Session-Id": session, "Mcp-Protocol-Version": self.version}
        return found

    def _renewed(self, lost: str, until: float) -> bool:
        """Begin a new session, again if that daemon dies, too: the request has not arrived anywhere yet."""
        while True:
            try:
                return self._renew_once(lost, until)
            except Gone:
                if time.monotonic() > until:
                    raise
            time.sleep(PAUSE)

    def _renew_once(self, lost: str, until: float) -> bool:
        """Repeat the client's handshake, unless another thread has just done it. False: there was no handshake."""
        with self._renewing:
            if self.session != lost:
                return True
            if self.greeting is None:
                return False
            session = self._told(self.greeting, until).get("mcp-session-id", "")
            if session:
                self._told({"jsonrpc": "2.0", "method": "notifications/initialized"}, until, session)
                for number, uri in enumerate([*self.watched]):
                    again = {"jsonrpc": "2.0", "id": f"again-{number}", "method": "resources/subscribe"}
                    self._told(again | {"params": {"uri": uri}}, until, session)
                self.session = session  # only now that its subscriptions are there
        return bool(session)

    def _told(self, message: Message, until: float, session: str = "") -> dict[str, str]:
        """Send a message of our own, and return the headers of the answer."""
        socket = self._dial(until)
        connection = self._request("POST", json.dumps(message).encode(), self._headers(message, session), socket=socket)
        try:
            status, headers = connection.head()
            list(connection.body(headers))
        finally:
            connection.socket.close()
        if status >= 500 or (status == 404 and session):  # the daemon is leaving, or another one came meanwhile
            raise Gone("The daemon went away while the session was begun.", hint="Ask again.")
        return headers

    def _say_updated(self, uris: list[str], subscription: Any = None) -> None:
        """Tell the client that its resources may have changed while we were cut off."""
        meta = {"_meta": {SUBSCRIPTION_KEY: subscription}} if subscription is not None else {}
        for uri in uris:
            self._write({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri, **meta}})

    def _follow(self, is_open: threading.Event) -> None:
        """Forward the daemon's notifications, in the older era. After each gap the client is told to look."""
        while True:
            session = self.session
            try:
                if not self._hear(session, is_open) and self._renew_once(session, NOW):
                    continue
            except BrokenPipeError:
                os._exit(0)
            except (WindlassError, OSError, ValueError):
                self._wait_for_daemon()
            time.sleep(PAUSE)

    def _hear(self, session: str, is_open: threading.Event) -> bool:
        """Forward one stream to its end. False: the daemon does not know the session."""
        headers = {"Accept": "text/event-stream", "Mcp-Session-Id": session, "Mcp-Protocol-Version": self.version}
        connection = self._request("GET", b"", headers, socket=dial(self.daemon.home))
        try:
            status, head = connection.head()
            if status == 200:
                self._say_updated(list(self.watched))
                is_open.set()
                for value in protocol.values(head, connection.body(head)):
                    self._write(value)
            return status != 404
        finally:
            connection.socket.close()

    def _leave(self) -> None:
        """End the session, if there is one and the daemon runs."""
        if not self.session:
            return
        try:
            connection = self._request("DELETE", b"", {"Mcp-Session-Id": self.session}, socket=dial(self.daemon.home))
            connection.deadline = time.monotonic() + LAST_ANSWERS
            connection.head()
        except (WindlassError, OSError, ValueError):
            return
