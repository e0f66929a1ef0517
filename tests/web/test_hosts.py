"""The name by which a caller addresses the daemon: one of its own, with no other port than its own."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from windlass.core.errors import NotAllowed
from windlass.web.authentication import TokenAuthenticator

PORT = ("127.0.0.1", 4000)
SOCKET = None


def called(host: str, server: tuple[str, int] | None) -> bool:
    """Whether a caller is heard that has a good token and addresses the daemon like this."""
    headers = [(b"host", host.encode()), (b"authorization", b"Bearer x")]
    try:
        TokenAuthenticator(lambda _token: "").caller(Request({"type": "http", "headers": headers, "server": server}))
    except NotAllowed as error:
        assert "This daemon is not" in str(error)
        return False
    return True


@pytest.mark.parametrize("host", ["localhost", "windlass", "127.0.0.1", "[::1]"])
def test_a_name_of_the_daemons_own_is_heard(host: str) -> None:
    """On the socket, which has no port, so that 80 means none; and on the port, also with its number."""
    assert called(host, SOCKET) and called(f"{host}:80", SOCKET)
    assert called(host, PORT) and called(f"{host}:4000", PORT) and not called(f"{host}:80", PORT)


@pytest.mark.parametrize(
    "host", ["localhost:1", "127.0.0.1:1", "localhost:", "localhost:4000:1", "", "evil.example:4000"]
)
def test_another_port_or_name_is_refused(host: str) -> None:
    """A page that a browser got from another server of this machine has its address."""
    assert not called(host, SOCKET) and not called(host, PORT)
    assert not called("localhost:4000", SOCKET)
