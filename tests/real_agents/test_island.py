"""The island: what is run there reaches our server, and nothing else in the world."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from island import Island

import patience

CALL = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 5); print('reached')"
BEYOND = "192.0.2.1"  # an address that is set apart for examples


def call(address: str, port: int, *before: str) -> str:
    """What becomes of a call to an address: `reached`, or the error."""
    words = (*before, sys.executable, "-c", CALL, address, str(port))
    ran = subprocess.run(words, capture_output=True, text=True, timeout=patience.seconds(20), check=False)
    return ran.stdout.strip() or ran.stderr.strip().splitlines()[-1]


def test_only_loopback_is_there(place: Island) -> None:
    """The only network interface is loopback, and no route leads away."""
    seen = subprocess.run(place.there("cat", "/proc/net/dev", "/proc/net/route"), capture_output=True, check=True)
    assert [line.split()[0] for line in seen.stdout.decode().splitlines() if ":" in line] == ["lo:"]
    assert seen.stdout.decode().splitlines()[-1].startswith("Iface")


def test_our_socket_is_there(place: Island) -> None:
    """The socket that the island hands out answers there, and not here: loopback is another one."""
    port = place.listener.getsockname()[1]
    assert call("127.0.0.1", port, *place.there()) == "reached"
    assert "refused" in call("127.0.0.1", port)


def test_this_machine_is_not_there(place: Island) -> None:
    """A server on this machine's own loopback is reached from here, and not from there."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert call("127.0.0.1", port) == "reached"
        assert "refused" in call("127.0.0.1", port, *place.there())
    assert place.tries() == 0


@pytest.mark.parametrize("address", [BEYOND, "2001:db8::1"])
def test_the_world_is_not_there_and_a_try_is_counted(loud_place: Island, address: str) -> None:
    """What lies beyond loopback can't be reached, and the island knows that someone tried."""
    assert "unreachable" in call(address, 80, *loud_place.there())
    assert loud_place.tries() > 0


def test_a_datagram_is_a_try(loud_place: Island) -> None:
    """A program that only asks a name server does not go unnoticed."""
    ask = f"import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'?', ('{BEYOND}', 53))"
    ran = subprocess.run(loud_place.there(sys.executable, "-c", ask), capture_output=True, text=True, check=False)
    assert "unreachable" in ran.stderr
    assert loud_place.tries() > 0


def test_the_keeper_leaves_with_the_one_who_asked(place: Island) -> None:
    """Nothing is left when the test's own process is killed in the middle."""
    stay = "import time\nfrom island import island\nwith island() as i:\n print(i.keeper, flush=True)\n time.sleep(600)"
    words = (sys.executable, "-c", stay)
    with subprocess.Popen(words, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True) as asker:
        assert asker.stdout
        keeper = Path("/proc") / asker.stdout.readline().strip()
        assert keeper.exists()
        os.kill(asker.pid, signal.SIGKILL)
    deadline = time.monotonic() + patience.seconds(10)
    while keeper.exists():
        assert time.monotonic() < deadline, "the keeper is still there"
        time.sleep(0.02)
