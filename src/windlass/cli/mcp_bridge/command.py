"""`windlass mcp`: a bridge from standard input and output to the daemon, for programs that speak MCP over them.

Each line is sent on, and each answer written. What it adds is that its client never notices that the daemon was
restarted: a session is begun anew, what only looks or counts once is asked again, and streams are followed on. What
changes something is sent on one by one, so that it happens in the order of the lines. Light to start, so it does
without the SDK.
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
from windlass.cli.connection.client import Client, here
from windlass.cli.connection.http import Connection, Gone, dial, quote
from windlass.cli.mcp_bridge.ordered import Turns
from windlass.cli.mcp_bridge.protocol import (
    Message,
    beginning,
    begins_now,
    encoded,
    era,
    is_stream,
    may_change,
    may_repeat,
    params,
    read_line,
    refusal,
    unsaid,
    values,
    wanted,
)
from windlass.core.errors import BadInput, Unavailable, WindlassError

PATIENCE = 60.0
"""Seconds that a run waits for a daemon that is being restarted."""
LAST_ANSWERS = 2.0
"""Seconds that answers may still take when our client has said all."""
PAUSE = 0.2
NOW = 0.0
"""A time that is over: what can't be had at once is not waited for, and no daemon is started for it."""
FAILED = -32000
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""What of a request stands in its head, too, in the newer era."""


@command("mcp", "windlass mcp")
@click.pass_obj
def mcp_command(daemon: Client) -> None:
    """Speak MCP on standard input and output: channel, inbox, documents and agents as tools.

    Agents are given this by themselves. It ends with its input.
    """
    gc.enable()  # this one stays
    Bridge(daemon).run()


class SessionLost(Unavailable):
    """The session is not known any more."""


class Bridge:
    """One client on standard input and output, and the daemon."""

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
        """What the client has subscribed to, in the older era."""
        self.following: threading.Event | None = None
        """Set when the stream is open on which the older era hears of news."""
        self.open: dict[str, Connection] = {}
        """Requests of the newer era that wait for their answer, by id."""
        self.turns = Turns(self._answer)
        self._writing = threading.Lock()
        self._renewing = threading.Lock()

    # ── lines in, lines out ──────────────────────────────────────────────────────────────────────────────────

    def run(self) -> None:
        """Send on every line until there is none."""
        asking: list[threading.Thread] = []
        self.turns.start()
        for line in iter(sys.stdin.buffer.readline, b""):
            message = self._parsed(line)
            if message is None:
                continue
            until = time.monotonic() + PATIENCE
            if may_change(message):
                self.turns.add(message, until)
            elif "method" in message and "id" in message and message["method"] != "initialize":
                asking = [each for each in asking if each.is_alive()]
                asking.append(threading.Thread(target=self._answer, args=(message, until), daemon=True))
                asking[-1].start()
            else:
                self._answer(message, until)
        left = self.turns.finish(LAST_ANSWERS)
        until = time.monotonic() + LAST_ANSWERS
        for each in asking:
            each.join(max(0.0, until - time.monotonic()))
        self._leave()
        if left:
            raise Unavailable(unsaid(left), hint="Look with `windlass peek` what was heard, and say the rest again.")

    def _parsed(self, line: bytes) -> Message | None:
        """The message in a line; what is none is answered at once."""
        message, code, words = read_line(line)
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
        """Send a message on, and write what is answered. Whatever goes wrong is an answer, too."""
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
        if method == "notifications/cancelled" and (self._hang_up(message) or self._never_sent(message)):
            return
        if method == "initialize":
            self.greeting, self.session, self.version = message, "", ""
        elif self.greeting is None and "id" in message and isinstance(method, str) and not era(message):
            raise BadInput(f"`initialize` comes first: send it before {method[:80]!r}, as every MCP client does.")
        self._until_answered(message, until)
        if method == "notifications/initialized" and self.session and self.following is None:
            self.following = threading.Event()
            threading.Thread(target=self._follow, args=(self.following,), daemon=True).start()
            self.following.wait(LAST_ANSWERS)  # so that whatever is subscribed to next is heard

    def _until_answered(self, message: Message, until: float) -> None:
        """Ask, and where that is safe ask again: a daemon may leave at any time, and the next one knows no session."""
        key, again = os.urandom(12).hex(), False
        while True:
            session = self.session
            try:
                message = self._anchored(message)
                return self._ask(message, key, until, again=again)
            except SessionLost:
                if time.monotonic() > until or not self._renewed(session, until):
                    raise
            except Gone:
                if not may_repeat(message) or time.monotonic() > until:
                    raise
                if is_stream(message):
                    self._wait_for_daemon()
                    again, until = True, time.monotonic() + PATIENCE
                time.sleep(PAUSE)

    def _anchored(self, message: Message) -> Message:
        """What waits for news from now on says since when, so that nothing is missed should it be asked again."""
        if not begins_now(message):
            return message
        wire = self._wire("GET", b"", {}, target=f"/messages/wait?timeout=0{self.where}")
        try:
            status, headers = wire.head()
            if status != 200:
                return message  # whatever is wrong, its own answer says it
            since = json.loads(b"".join(wire.body(headers)))["since"]
        finally:
            wire.line.close()
        return beginning(message, since)

    def _ask(self, message: Message, key: str, until: float, *, again: bool) -> None:
        """One try. Raises Lost for a session that is gone, Gone where the answer broke off."""
        session = "" if era(message) else self.session
        headers = self._headers(message) | {"Windlass-Request": key}
        line = self._dialled(until if may_change(message) else None)  # a long wait has patience left at its end
        wire = self._wire("POST", json.dumps(message).encode(), headers, line=line)
        name = json.dumps(message["id"]) if era(message) and "id" in message else ""
        if name:
            self.open[name] = wire
        try:
            status, headers = wire.head()
            if status == 404 and session:
                raise SessionLost("The session is gone.")
            if message.get("method") == "initialize":
                self.session = headers.get("mcp-session-id", "")
            self._pass_on(message, status, values(headers, wire.body(headers)), again=again)
        except Gone:
            if not name or name in self.open:  # else we have hung up ourselves
                raise
        finally:
            wire.line.close()
            if name:
                self.open.pop(name, None)

    def _pass_on(self, message: Message, status: int, answers: Iterator[Message], *, again: bool) -> None:
        for answer in answers:
            if "jsonrpc" not in answer:
                raise Unavailable(refusal(answer, status))
            if "method" in answer:
                self._write(answer)
                if again and answer["method"] == ACKNOWLEDGED:
                    self._say_updated(wanted(message), message["id"])
                continue
            self._answered(message, answer)
            return  # whatever becomes of the stream now, this is answered
        if "id" in message and "method" in message:
            raise Gone("The daemon went away before it had answered.", hint="Look whether it was done, or ask again.")

    def _answered(self, message: Message, answer: Message) -> None:
        if message.get("method") == "initialize":
            result = answer.get("result")
            self.version = str(result.get("protocolVersion", "")) if isinstance(result, dict) else ""
        if "id" in message and "method" in message:
            if "result" in answer:
                self._remember(message)
            self._write(answer | {"id": message["id"]})

    def _remember(self, message: Message) -> None:
        uri = str(params(message).get("uri"))
        if message.get("method") == "resources/subscribe":
            self.watched[uri] = None
        elif message.get("method") == "resources/unsubscribe":
            self.watched.pop(uri, None)

    def _hang_up(self, message: Message) -> bool:
        """In the newer era a request is cancelled by hanging up."""
        wire = self.open.pop(json.dumps(params(message).get("requestId")), None)
        if wire is not None:
            wire.line.shutdown(2)
        return wire is not None

    def _never_sent(self, message: Message) -> bool:
        """What waits for its turn is cancelled by forgetting it."""
        return self.turns.drop(params(message).get("requestId"))

    # ── the daemon ───────────────────────────────────────────────────────────────────────────────────────────

    def _wire(
        self, method: str, body: bytes, headers: dict[str, str], *, line: Any = None, target: str = "/mcp"
    ) -> Connection:
        wire = Connection(line or self._dialled(), waiting=_silent, outlet=sys.stdout.fileno())
        wire.send(method, target, body, headers)
        return wire

    def _dialled(self, until: float | None = None) -> Any:
        """A line to the daemon. A run waits for one that is being restarted, a person's starts it."""
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
        """Until there is one again: for streams none is started, as a person may have stopped it."""
        while True:
            try:
                return dial(self.daemon.home).close()
            except OSError:
                time.sleep(5 * PAUSE)

    def _headers(self, message: Message, session: str = "") -> dict[str, str]:
        found = {"Accept": "application/json, text/event-stream", "Windlass-Path": self.place}
        version, method = era(message), message.get("method")
        if version and isinstance(method, str):
            found |= {"Mcp-Protocol-Version": version, "Mcp-Method": encoded(method)}
            name = params(message).get(NAMED.get(method, ""))
            return found | ({"Mcp-Name": encoded(name)} if isinstance(name, str) else {})
        session = session or self.session
        if method != "initialize" and session:
            found |= {"Mcp-Session-Id": session, "Mcp-Protocol-Version": self.version}
        return found

    def _renewed(self, lost: str, until: float) -> bool:
        """Begin the session anew, and again where that daemon dies, too: what is to be said in it was not heard yet."""
        while True:
            try:
                return self._begun_anew(lost, until)
            except Gone:
                if time.monotonic() > until:
                    raise
            time.sleep(PAUSE)

    def _begun_anew(self, lost: str, until: float) -> bool:
        """One try to begin the session as the client did; whoever comes second finds it done."""
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
                self.session = session  # only now: one that is begun by half would be deaf
        return bool(session)

    def _told(self, message: Message, until: float, session: str = "") -> dict[str, str]:
        """Say something of our own, and let nobody hear the answer; returns its headers."""
        line = self._dialled(until)
        wire = self._wire("POST", json.dumps(message).encode(), self._headers(message, session), line=line)
        try:
            status, headers = wire.head()
            list(wire.body(headers))
        finally:
            wire.line.close()
        if status >= 500 or (status == 404 and session):  # it is leaving, or another one came meanwhile
            raise Gone("The daemon went away while the session was begun.", hint="Ask again.")
        return headers

    def _say_updated(self, uris: list[str], subscription: Any = None) -> None:
        """While we were cut off, something may have come: let the client look."""
        meta = {"_meta": {SUBSCRIPTION_KEY: subscription}} if subscription is not None else {}
        for uri in uris:
            self._write({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri, **meta}})

    def _follow(self, is_open: threading.Event) -> None:
        """What the daemon says by itself, in the older era. After each gap the client is told to look."""
        while True:
            session = self.session
            try:
                if not self._hear(session, is_open) and self._begun_anew(session, NOW):
                    continue
            except BrokenPipeError:
                os._exit(0)
            except (WindlassError, OSError, ValueError):
                self._wait_for_daemon()
            time.sleep(PAUSE)

    def _hear(self, session: str, is_open: threading.Event) -> bool:
        """One stream, to its end. False: the daemon does not know the session."""
        headers = {"Accept": "text/event-stream", "Mcp-Session-Id": session, "Mcp-Protocol-Version": self.version}
        wire = self._wire("GET", b"", headers, line=dial(self.daemon.home))
        try:
            status, head = wire.head()
            if status == 200:
                self._say_updated(list(self.watched))
                is_open.set()
                for value in values(head, wire.body(head)):
                    self._write(value)
            return status != 404
        finally:
            wire.line.close()

    def _leave(self) -> None:
        """Say goodbye, if there is a session and someone to say it to."""
        if not self.session:
            return
        try:
            wire = self._wire("DELETE", b"", {"Mcp-Session-Id": self.session}, line=dial(self.daemon.home))
            wire.deadline = time.monotonic() + LAST_ANSWERS
            wire.head()
        except (WindlassError, OSError, ValueError):
            return


def _silent(_seconds: float) -> None:
    """A stream may be quiet for long."""
