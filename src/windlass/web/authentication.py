"""Who is calling: the connection says so, never an argument."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from starlette.requests import Request

from windlass.core.errors import NotAllowed, WindlassError

CALLER = "windlass.caller"
"""Where a connection to the socket keeps who made it: a `Caller`, or the error why nobody is heard."""
KNOWN = "windlass.known"
"""Where a connection keeps what is to be called with the run that it turns out to be. Raises Unavailable."""

Owner = Callable[[str], str]
"""The run that a token belongs to; empty for the person's own token. Raises NotAllowed for any other."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A person, or a run."""

    run: str = ""


HOSTS = frozenset(["windlass", "localhost", "127.0.0.1", "[::1]"])
"""The names by which callers may address the daemon. A page in a browser that was tricked into a call uses another."""

USUAL_PORT = 80
"""What HTTP means by no port; a socket has none."""


def _refuse_browsers(request: Request) -> None:
    """Refuse a page in a browser: someone may have forwarded the socket to where a browser reaches it."""
    if "origin" in request.headers or request.headers.get("sec-fetch-site"):
        raise NotAllowed("Pages in a browser may not call this daemon.", hint="Programs may, without an Origin.")
    host, (_, port) = request.headers.get("host", ""), request.scope.get("server") or ("", None)
    if host not in HOSTS and host not in {f"{name}:{port or USUAL_PORT}" for name in HOSTS}:
        raise NotAllowed(f"This daemon is not {host[:80]!r}.", hint="Use http://localhost as its address.")


class Authenticator(Protocol):
    """Says who makes a request. Raises NotAllowed for a caller that may not."""

    def caller(self, request: Request, /) -> Caller: ...


class SocketAuthenticator:
    """Knows a caller by the process that connected to the Unix socket, as it was identified then."""

    def caller(self, request: Request) -> Caller:
        """One identity for a connection, however many requests come on it."""
        _refuse_browsers(request)
        found = request.scope.get("state", {}).get(CALLER)
        if isinstance(found, WindlassError):
            raise found.with_traceback(None)
        if not isinstance(found, Caller):
            raise NotAllowed("The caller cannot be told apart.")
        return found


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
        run = self.owner(token.strip())
        request.scope.get("state", {}).get(KNOWN, lambda _run: None)(run)
        return Caller(run)
