"""The loopback port: where programs call that know a URL and a token, but no socket."""

from __future__ import annotations

import socket
from pathlib import Path

from windlass.core.errors import Unavailable
from windlass.system.files import write_whole

FILE = "port"
LOOPBACK = "127.0.0.1"
OFF = -1


def open_port(home: Path, wanted: int) -> socket.socket:
    """Listen on loopback, and write the number into the home. 0 is any; the one of a daemon that died is tried first.

    Made for TCP by name: without that, asyncio leaves small answers waiting for more to send along.
    """
    line = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _bind(line, wanted or _former(home), fixed=wanted > 0)
        line.listen(1024)
        line.settimeout(0.0)
        write_whole(home / FILE, b"%d\n" % line.getsockname()[1])
    except OSError as error:
        line.close()
        raise Unavailable(
            f"Port {wanted} can't be listened on: {error.strerror}." if wanted else f"No port: {error.strerror}.",
            hint="Set daemon.port to another one, or to 0 for any.",
        ) from error
    return line


def close_port(home: Path) -> None:
    """Remove the file with the number: the port may soon be someone else's."""
    (home / FILE).unlink(missing_ok=True)


def _bind(line: socket.socket, port: int, *, fixed: bool) -> None:
    try:
        line.bind((LOOPBACK, port))
    except OSError:
        if fixed or not port:
            raise
        line.bind((LOOPBACK, 0))


def _former(home: Path) -> int:
    try:
        number = int((home / FILE).read_text("ascii"))
    except (OSError, ValueError):
        return 0
    return number if 1024 <= number < 65536 else 0
