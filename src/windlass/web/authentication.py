"""Who is calling: the connection tells, never an argument."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from starlette.requests import Request

from windlass.core.errors import NotAllowed

Trace = Callable[[int], str | None]
"""From a process to the run it belongs to, if any."""
Owner = Callable[[str], str]
"""From a token to the run it belongs to, nothing for the person's own; refuses any other."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A person, or a run."""

    run: str = ""

    def must_be_human(self) -> None:
        if self.run:
            raise NotAllowed(
                "An agent may not do that; only a person outside every run can.",
                hint="Inside a run: `windlass agent complete`, `windlass agent ask`, `windlass agent fail`.",
            )

    def must_be_run(self) -> str:
        if not self.run:
            raise NotAllowed(
                "Only an agent can give its own signal; this caller is outside every run.",
                hint="`windlass list` shows who is at work; `windlass stop NAME` ends it, `windlass send` tells it.",
            )
        return self.run


HOSTS = frozenset(["windlass", "localhost", "127.0.0.1", "[::1]"])
"""What a caller may take us for; a page that was tricked into calling us has another name."""


def _refuse_browsers(request: Request) -> None:
    """No page may call: the socket may have been forwarded to where a browser reaches it."""
    if "origin" in request.headers or request.headers.get("sec-fetch-site"):
        raise NotAllowed("Pages in a browser may not call this daemon.", hint="Programs may, without an Origin.")
    host = request.headers.get("host", "")
    if host.rpartition(":")[0] not in HOSTS and host not in HOSTS:
        raise NotAllowed(f"This daemon is not {host[:80]!r}.", hint="Use http://localhost as its address.")


class Authenticator(Protocol):
    """Tells callers apart."""

    def caller(self, request: Request, /) -> Caller: ...


class SocketAuthenticator:
    """Looks at the other end of the socket."""

    def __init__(self, uid: int, trace: Trace) -> None:
        self.uid = uid
        self.trace = trace

    def caller(self, request: Request) -> Caller:
        """The peer's user must be ours; a process inside a run is that run."""
        _refuse_browsers(request)
        if request.client is None:
            raise NotAllowed("The caller cannot be told apart.")
        uid, pid = int(request.client.host), request.client.port
        if uid != self.uid:
            raise NotAllowed(f"This daemon belongs to another user (uid {self.uid}).")
        return Caller(self.trace(pid) or "")


class TokenAuthenticator:
    """Looks at the token: on a port, nothing else tells callers apart."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner

    def caller(self, request: Request) -> Caller:
        """Whoever has the token of a run is that run."""
        _refuse_browsers(request)
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not token.strip():
            raise NotAllowed(
                "Callers on this port need a token.",
                hint="Send `Authorization: Bearer …` with $WINDLASS_TOKEN, or with what the file `token` holds.",
            )
        return Caller(self.owner(token.strip()))
