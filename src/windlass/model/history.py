"""Conversations, one file each, in a folder of the agent's that outlives its runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from windlass.core.errors import BadInput, NotFound
from windlass.system.files import write_whole

SESSIONS = ".local/state/windlass/sessions"
"""Below the folder that stands for the agent's home."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")


def folder(environment: Mapping[str, str], *, sandboxed: bool) -> Path:
    """The agent's folder for sessions: the same one inside and outside a sandbox."""
    home = environment.get("HOME") or str(Path.home())
    ours, agent = environment.get("WINDLASS_HOME"), environment.get("WINDLASS_AGENT")
    if not sandboxed and ours and agent:
        home = f"{ours}/homes/{agent}/home"
    return Path(home, SESSIONS)


class Session:
    """One conversation, as bytes that only the library understands."""

    def __init__(self, place: Path, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise BadInput(f"{name[:80]!r} is no name of a session.")
        self.name = name
        self.file = place / f"{name}.json"

    def load(self) -> bytes:
        """Raises NotFound if it was never kept."""
        try:
            return self.file.read_bytes()
        except FileNotFoundError:
            raise NotFound(f"There is no session {self.name}.") from None

    def keep(self, content: bytes) -> None:
        """Replace the kept conversation in one step."""
        self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(self.file, content)
