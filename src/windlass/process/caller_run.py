"""Trace a calling process to the run it belongs to."""

from __future__ import annotations

from windlass.core.errors import NotAllowed
from windlass.process.proc import Process, marker_of, process

_TRIES = 5


def trace(pid: int, home_id: str) -> str | None:
    """The run that a process belongs to, by its own, its session's or its ancestors' marker; None outside every run.

    What follows the home in the marker is returned as it is. Raises NotAllowed if the process has gone: nobody becomes
    human by leaving.
    """
    for _ in range(_TRIES):
        ancestry = _ancestry(pid)
        if run := _run_of(ancestry, f"{home_id}:"):
            return run
        if ancestry and ancestry == _ancestry(pid):  # unchanged while its markers were read: then it truly has none
            return None
    raise NotAllowed(
        f"The calling process {pid} has gone, so nobody can tell whom it belonged to.",
        hint="Run the command again, and keep its process until the answer is there.",
    )


def _run_of(ancestry: list[Process], prefix: str) -> str:
    for member in ancestry:
        for marker in (marker_of(member.pid), marker_of(member.session)):
            if marker.startswith(prefix):
                return marker[len(prefix) :]
    return ""


def _ancestry(pid: int) -> list[Process]:
    """A process and its ancestors, up to the first; nothing if it, or one of them, has gone meanwhile."""
    ancestry: list[Process] = []
    while pid > 0 and all(member.pid != pid for member in ancestry):
        found = process(pid)
        if found is None or (found.gone and not ancestry):
            return []
        ancestry.append(found)
        pid = found.parent
    return ancestry
