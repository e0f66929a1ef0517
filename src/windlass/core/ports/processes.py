"""The processes of agents, as the engine starts, watches and ends them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from windlass.core.nouns.run import Identity
from windlass.core.runs.sandbox import Sandbox, SandboxKeeper


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A process to start: detached, in its own session, output and exit code into its run's folder."""

    run: str
    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]
    """Added to what it gets of the daemon's own; the marker is the adapter's business."""
    keeps: tuple[str, ...] = ()
    """Names of variables that it gets of the daemon's, besides PATH, HOME, LANG and the like."""
    stdin: str = ""
    """A file; nothing means an empty input."""
    sandbox: Sandbox | None = None
    """Where it may go; nothing: wherever the user may."""


class Processes(Protocol):
    """Agents' processes. They outlive us; we find them again."""

    async def start(self, launch: Launch, /) -> Identity:
        """Start it. Raises BadInput if the program is not there, Unavailable if the system has no room."""
        ...

    async def find(self, run: str, /) -> Identity | None:
        """The live process that carries this run's marker, if there is one."""
        ...

    def alive(self, identity: Identity, /) -> bool:
        """Whether this very process lives (a reused pid does not count, nor does a zombie)."""
        ...

    def age(self, identity: Identity, /) -> float:
        """Seconds since this process was started, by a clock that never jumps."""
        ...

    async def marked(self) -> dict[str, tuple[int, ...]]:
        """Every run whose marker a living process carries, known or not, with their pids."""
        ...

    async def stop(self, run: str, identity: Identity | None, *, grace: float, gently: str = "TERM") -> int:
        """End the run's whole tree, also what left its session: first by a gentle signal, after the grace by force.

        Returns how many processes there were."""
        ...

    def follow(self, run: str, identity: Identity, stir: Callable[[str], None], /, *places: str) -> None:
        """Call `stir(run)` on the loop when its output grew, it has gone or, if that can be told, a place changed."""
        ...

    def forget(self, run: str, /) -> None:
        """Follow it no longer."""
        ...

    def output(self, run: str, offset: int, limit: int, /) -> bytes:
        """Its output from an offset on, at most `limit` bytes."""
        ...

    def exit_code(self, run: str, /) -> int | None:
        """What the shim wrote when it ended; None if it could not."""
        ...

    async def warden(self) -> SandboxKeeper:
        """What can keep a run in a sandbox on this machine."""
        ...

    def values(self, names: Sequence[str], identity: Identity | None, /) -> tuple[str, ...]:
        """What these variables hold now, with us and with a process; for blotting out, never to be stored."""
        ...

    def overwrite(self, run: str, offset: int, content: bytes, /) -> None:
        """Put other bytes in the place of some of its output."""
        ...

    async def discard(self, folder: str, /) -> None:
        """Remove an agent's own folder, with what stood for the user's home."""
        ...
