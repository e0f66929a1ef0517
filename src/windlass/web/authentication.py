"""Who is calling: the connection says so, never an argument."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from starlette.requests import Request

from windlass.core.errors import NotAllowed

Trace = Callable[[int], str | None]
"""The run that a process belongs to, if any."""
Owner = Callable[[str], str]
"""The run that a token belongs to; empty for the person's own token. Raises NotAllowed for any other."""


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
"""The names by which callers may address the daemon. A page in a browser that was tricked into a call uses another."""


def _refuse_browsers(request: Request) -> None:
    """Refuse a page in a browser: someone may have forwarded the socket to where a browser reaches it."""
    if "origin" in request.headers or request.headers.get("sec-fetch-site"):
        raise NotAllowed("Pages in a browser may not call this daemon.", hint="Programs may, without an Origin.")
    host = request.headers.get("host", "")
    if host.rpartition(":")[0] not in HOSTS and host not in HOSTS:
        raise NotAllowed(f"This daemon is not {host[:80]!r}.", hint="Use http://localhost as its address.")


class Authenticator(Protocol):
    """Says who makes a request. Raises NotAllowed for a caller that may not."""

    def caller(self, request: Request, /) -> Caller: ...


class SocketAuthenticator:
    """Knows a caller by the process at the other end of the Unix socket."""

    def __init__(self, uid: int, trace: Trace) -> None:
        self.uid = uid
        self.trace = trace

    def caller(self, request: Request) -> Caller:
        """The caller's user must be the daemon's own; a process inside a run is that run."""
        _refuse_browsers(request)
        if request.client is None:
            raise NotAllowed("The caller cannot be told apart.")
        uid, pid = int(request.client.host), request.client.port
        if uid != self.uid:
            raise NotAllowed(f"This daemon belongs to another user (uid {self.uid}).")
        return Caller(self.trace(pid) or "")


class TokenAuthenticator:
    """Knows a caller on the port by its token."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner

    def caller(self, request: Request) -> Caller:
        """A caller with the token of a run is that run."""
        _refuse_browsers(request)
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not token.strip():
            raise NotAllowed(
                "Callers on this port need a token.",
                hint="Send `Authorization: Bearer …` with $WINDLASS_TOKEN, or with what the file `token` holds.",
            )
        return Caller(self.owner(token.strip()))
