"""What fault tests need besides a stage: many agents at once, and a look at the daemon itself."""

from __future__ import annotations

import http.client
import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from e2e_stage import WITHIN, Stage
from e2e_stage import stage as any_stage

from patience import until

MEGABYTE = 1 << 20
_OVER = ("completed", "error", "stopped", "waiting")


@contextmanager
def stage(*, settings: str = "", **more: Any) -> Iterator[Stage]:
    """A stage whose agents are in no sandbox: they do to processes and files what a sandbox would keep them from."""
    with any_stage(settings=f"{settings}\n[sandbox]\nmode = 'off'\n", **more) as house:
        yield house


def post(house: Stage, path: str, /, **body: Any) -> Any:
    """What the daemon answers to a person's request, without the time that a command takes."""
    line = http.client.HTTPConnection("windlass", timeout=2 * WITHIN)
    with subscriber(house) as door:
        line.sock = door
        line.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = line.getresponse()
        content = json.loads(answer.read())
        assert answer.status < 300, content
    return content


@contextmanager
def subscriber(house: Stage, path: str = "") -> Iterator[socket.socket]:
    """A connection to the daemon, on which a path was asked for and nothing is read yet."""
    with socket.socket(socket.AF_UNIX) as door:
        door.settimeout(2 * WITHIN)
        door.connect(str(house.state / "daemon.sock"))
        if path:
            door.sendall(f"GET {path} HTTP/1.1\r\nHost: windlass\r\n\r\n".encode())
        yield door


def give(house: Stage, title: str, command: str) -> str:
    """Give work to a command; returns the agent's name."""
    order = {"path": str(house.repo), "title": title, "provider": "command", "options": {"command": command}}
    return str(post(house, "/tasks", **order)["agent"])


def over(house: Stage, name: str, *, within: float = 25.0) -> Any:
    """All about an agent, once nothing more happens to it without a person."""

    def look() -> Any:
        shown = house.agent(name)
        return shown if shown["status"] in _OVER else None

    return until(look, f"{name} to be over: {house.agent(name)}", within=within)


def broken(house: Stage) -> list[str]:
    """The promises that `doctor --check` finds broken."""
    found = house.wl("doctor", "--check", "--json", code=None).value
    return [f"{each['name']}: {each['detail']}" for each in found if not each["ok"]]


def most_memory(house: Stage) -> int:
    """The most bytes of memory that the daemon has ever had."""
    status = Path(f"/proc/{house.daemon}/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) * 1024


def descriptors(house: Stage, kind: str = "") -> int:
    """How many files the daemon has open, but for the store's: it opens those when it first needs them, up to a number.

    With a kind, only those whose name begins like this.
    """
    found = (_target(path) for path in Path(f"/proc/{house.daemon}/fd").iterdir())
    return sum(each.startswith(kind) and "/windlass.db" not in each for each in found)


def _target(link: Path) -> str:
    with suppress(OSError):  # closed since we looked
        return str(link.readlink())
    return ""
