"""A network that has nothing but loopback, for programs that must not reach anything else.

A keeper process lives on the island for as long as it is needed. It hands back a listening socket, so that a server in
the test's own process can be reached from there, and `nsenter` brings other programs there. It needs root, or a system
where anyone may make user namespaces.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

NEW_USERS, NEW_NETWORK = 0x10000000, 0x40000000
GET_FLAGS, SET_FLAGS, UP = 0x8913, 0x8914, 0x1


class NoIsland(Exception):
    """This machine does not let us make one."""


@dataclass(frozen=True, slots=True)
class Island:
    listener: socket.socket
    """Listens on 127.0.0.1 there."""
    keeper: int
    own_users: bool
    """We are not root, and so it has a user namespace of its own."""

    def there(self, *words: str) -> tuple[str, ...]:
        """The command that runs these words on the island."""
        place = f"/proc/{self.keeper}/ns"
        users = (f"--user={place}/user", "--preserve-credentials") if self.own_users else ()
        return ("nsenter", *users, f"--net={place}/net", "--", *words)

    def tries(self) -> int:
        """How often something there tried to reach an address beyond loopback; a name server there counts as well."""
        old, new = (Path(f"/proc/{self.keeper}/net/{name}").read_text() for name in ("snmp", "snmp6"))
        names, counts = (line.split() for line in old.splitlines() if line.startswith("Ip:"))
        return int(counts[names.index("OutNoRoutes")]) + int(new.partition("Ip6OutNoRoutes")[2].split()[0])


@contextmanager
def island() -> Iterator[Island]:
    """An island that is gone at the end."""
    if not shutil.which("nsenter"):
        raise NoIsland("there is no nsenter (of util-linux)")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        words = (sys.executable, "-I", __file__, str(theirs.fileno()))
        with subprocess.Popen(words, pass_fds=(theirs.fileno(),), stderr=subprocess.PIPE, text=True) as keeper:
            theirs.close()
            told, sockets, _, _ = socket.recv_fds(ours, 16, 1)
            if not sockets:
                raise NoIsland(f"this system allows no network of one's own: {keeper.communicate()[1].strip()}")
            with ours, socket.socket(fileno=sockets[0]) as listener:  # the keeper leaves when ours is closed
                yield Island(listener, keeper.pid, own_users=told == b"own users")


# ── on the island ────────────────────────────────────────────────────────────────────────────────────────────


def keep(door: socket.socket) -> None:
    """Make the island, hand out its socket, and stay until the other side leaves."""
    own_users = _leave()
    _raise_loopback()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        socket.send_fds(door, [b"own users" if own_users else b"as root"], [listener.fileno()])
    door.recv(1)


def _leave() -> bool:
    """Go to a network of our own. Whether that took users of our own."""
    uid, gid = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW_NETWORK) == 0:
        return False
    if libc.unshare(NEW_USERS | NEW_NETWORK):
        raise SystemExit(os.strerror(ctypes.get_errno()))
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    return True


def _raise_loopback() -> None:
    """What `ip link set lo up` does."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        answer = fcntl.ioctl(any_socket, GET_FLAGS, struct.pack("16sH14x", b"lo", 0))
        flags = struct.unpack("16sH14x", answer)[1]
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sH14x", b"lo", flags | UP))


if __name__ == "__main__":
    keep(socket.socket(fileno=int(sys.argv[1])))
