"""A desk for bad inputs: one daemon, canaries around it, and a look whether anything came of it."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from e2e_stage import WITHIN, Stage

SECRET = "canary-9f2c17b0d4"
"""Stands in the daemon's environment and in git's settings, and may be found nowhere else."""


def call(
    house: Stage, method: str, path: str, body: Any = b"", headers: Mapping[str, str] | None = None
) -> tuple[int, Any]:
    """The daemon's answer to any request, however odd: its number, and what it says."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    line = http.client.HTTPConnection("windlass")
    with socket.socket(socket.AF_UNIX) as door:
        door.settimeout(WITHIN)
        door.connect(str(house.state / "daemon.sock"))
        line.sock = door
        with suppress(BrokenPipeError, ConnectionResetError):  # it may refuse a long body before all of it was sent
            line.request(method, path, content, dict(headers or {}))
        answer = line.getresponse()
        said = answer.read()
    return answer.status, json.loads(said) if said else None


class Desk:
    """A stage on which nothing may ever be created by what is typed and sent."""

    def __init__(self, house: Stage) -> None:
        self.house = house
        self.canary = house.flag("canary")
        house.wl("daemon", "start")
        self.before = self.traces()

    def traces(self) -> tuple[object, ...]:
        """Agents, changes, worktrees, hubs, refs and files: what half-done work would leave."""
        house = self.house
        return (
            house.ask("/agents?all=1")["items"],
            house.queue(),
            house.worktrees(),
            sorted(house.state.glob("runs/*")),
            house.git("for-each-ref"),
            house.git("status", "--porcelain"),
            sorted(path.name for path in house.folder.iterdir() if path.suffix != ".yaml"),
        )

    def refuses(
        self, method: str, path: str, body: Any = b"", *, numbers: tuple[int, ...] = (400,), **headers: str
    ) -> str:
        """Send it; returns the sentence, after a look that nothing has come of it."""
        number, said = call(self.house, method, path, body, headers)
        assert number in numbers, (path, body, number, said)
        assert said["error"]["message"], said
        assert len(said["error"]["message"]) < 1000, said
        self.is_sound()
        return str(said["error"]["message"])

    def is_sound(self) -> None:
        """Nothing was made, no canary sings, the daemon answers and has met no trouble."""
        assert not self.canary.exists()
        assert self.traces() == self.before
        assert self.house.ask("/status")["troubles"] == []
