"""The processes of agents, as the engine starts, watches and ends them. They may run on another machine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
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
    """Variables of the run; the adapter adds some of the daemon's own."""
    keeps: tuple[str, ...] = ()
    """Names of variables that the process gets from the daemon's environment, like PATH, HOME and LANG."""
    stdin: str = ""
    """A file; nothing means an empty input."""
    sandbox: Sandbox | None = None
    """The paths that the process may use; None means all that the user may."""


class Processes(Protocol):
    """Agents' processes. They outlive the daemon, which finds them again.

    Every question is awaited, so none can be asked within a transaction: read facts, ask, then decide.
    """

    async def start(self, launch: Launch, /) -> Identity:
        """Start a process. Raises BadInput if the program is missing, Unavailable if the system has no room."""
        ...

    async def find(self, run: str, /) -> Identity | None:
        """The first live process of this run, if there is one, though nobody recorded it."""
        ...

    async def alive(self, *identities: Identity) -> frozenset[Identity]:
        """Those of these processes that live; a reused pid or a zombie does not count. The dead never come back."""
        ...

    async def age(self, identity: Identity, /) -> float:
        """Seconds since this process was started, by a clock that never jumps."""
        ...

    async def strays(self, runs: Collection[str], /) -> tuple[int, ...]:
        """The pids of living processes that some run has started, but none of these."""
        ...

    async def stop(self, run: str, identity: Identity | None, *, grace: float, gently: str = "TERM") -> int:
        """End all processes of a run, also those that left its session, and return how many there were.

        Sends the gentle signal first, and kills after the grace.
        """
        ...

    def follow(self, run: str, identity: Identity, stir: Callable[[str], None], /, *places: str) -> None:
        """Call `stir(run)` on the loop when output grew, the process has gone or, if the system can tell, a place
        changed."""
        ...

    def forget(self, run: str, /) -> None:
        """End `follow`."""
        ...

    async def output(self, run: str, offset: int, limit: int, /) -> bytes:
        """A run's output from an offset on, at most `limit` bytes."""
        ...

    async def output_shared(self, run: str, /) -> bool:
        """Whether the file of a run's output has a second name elsewhere: it may be someone else's file."""
        ...

    async def exit_code(self, run: str, /) -> int | None:
        """The exit code that the shim wrote when the process ended; None if it could not."""
        ...

    async def sandbox_keeper(self) -> SandboxKeeper:
        """The program that can keep a run in a sandbox, or why there is none."""
        ...

    async def values(self, names: Sequence[str], identity: Identity | None, /) -> tuple[str, ...]:
        """The values of these variables in the daemon and in a process: to redact them, never to store them."""
        ...

    async def overwrite(self, run: str, offset: int, content: bytes, /) -> None:
        """Replace some bytes of a run's output, unless its file has a second name elsewhere."""
        ...

    async def drop_output(self, run: str, length: int, /) -> bool:
        """Remove the file of a run's output if it has just so many bytes and one name, and no process has it open."""
        ...

    async def discard(self, folder: str, /) -> None:
        """Remove an agent's own folder, with its stand-in for the user's home."""
        ...
