"""Processes in memory: a test says what each one prints, and when it ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from signal import Signals

from windlass.core.errors import BadInput, WindlassError
from windlass.core.nouns.run import Identity
from windlass.core.ports.processes import Launch
from windlass.core.runs.sandbox import SandboxKeeper


@dataclass(slots=True)
class FakeProcess:
    """What a fake process is and has said."""

    launch: Launch
    identity: Identity
    alive: bool = True
    output: bytearray = field(default_factory=bytearray)
    shared: bool = False
    """Its output has a second name elsewhere."""
    exit_code: int | None = None
    began: float = 0.0


class FakeProcesses:
    """The `Processes` port in memory: a test says what each process says, and when it ends."""

    def __init__(self, *, missing: Collection[str] = (), monotonic: Callable[[], float] = time.monotonic) -> None:
        self.started: dict[str, FakeProcess] = {}
        """Each run's process, as it was started last."""
        self.refusal: WindlassError | None = None
        """Raised by `start` as long as it is set, as when the system has no room."""
        self.keeper = SandboxKeeper("fake", "These processes are not real.")
        """What keeps runs in a sandbox; here, nothing does."""
        self.variables: dict[str, str] = {}
        """What the daemon's environment holds."""
        self.discarded: list[str] = []
        self._missing = missing
        self._monotonic = monotonic
        self._pid = 1000
        self._stirs: dict[str, tuple[asyncio.AbstractEventLoop, Callable[[str], None], tuple[str, ...]]] = {}

    # ── what a test does ──

    def say(self, run: str, words: bytes) -> None:
        """Let a run's process write."""
        self.started[run].output += words
        self._stir(run)

    def touch(self, folder: str) -> None:
        """Let something change in a folder; whoever follows a run there is stirred."""
        for run, (_, _, places) in self._stirs.items():
            if folder in places:
                self._stir(run)

    def exit(self, run: str, code: int) -> None:
        """Let a run's process end with an exit code."""
        self.started[run].exit_code = code
        self.vanish(run)

    def vanish(self, run: str) -> None:
        """Let a run's process be gone, without a word about how it ended."""
        self.started[run].alive = False
        self._stir(run)

    def lives(self, identity: Identity) -> bool:
        """Whether this process has not ended."""
        return any(each.alive and each.identity == identity for each in self.started.values())

    # ── the port ──

    async def start(self, launch: Launch, /) -> Identity:
        if self.refusal:
            raise self.refusal
        if not launch.argv or launch.argv[0] in self._missing:
            raise BadInput(f"The program {' '.join(launch.argv[:1])!r} is not there.")
        self._pid += 1
        process = FakeProcess(launch, Identity(self._pid, self._pid, "fake"), began=self._monotonic())
        if before := self.started.get(launch.run):
            process.output = before.output
        self.started[launch.run] = process
        return process.identity

    async def find(self, run: str, /) -> Identity | None:
        process = self.started.get(run)
        return process.identity if process and process.alive else None

    async def alive(self, *identities: Identity) -> frozenset[Identity]:
        return frozenset(identity for identity in identities if self.lives(identity))

    async def age(self, identity: Identity, /) -> float:
        now = self._monotonic()
        return max((now - each.began for each in self.started.values() if each.identity == identity), default=0.0)

    async def strays(self, runs: Collection[str], /) -> tuple[int, ...]:
        return tuple(each.identity.pid for run, each in self.started.items() if each.alive and run not in runs)

    async def stop(
        self,
        run: str,
        identity: Identity | None,
        *,
        grace: float,
        gently: str = "TERM",
    ) -> int:
        process = self.started.get(run)
        if process is None or not process.alive:
            return 0
        self.exit(run, 128 + Signals[f"SIG{gently}"])
        return 1

    def follow(
        self,
        run: str,
        identity: Identity,
        stir: Callable[[str], None],
        /,
        *places: str,
    ) -> None:
        self._stirs[run] = (asyncio.get_running_loop(), stir, places)
        self._stir(run)

    def forget(self, run: str, /) -> None:
        self._stirs.pop(run, None)

    async def output(self, run: str, offset: int, limit: int, /) -> bytes:
        process = self.started.get(run)
        return bytes(process.output[offset : offset + limit]) if process else b""

    async def exit_code(self, run: str, /) -> int | None:
        process = self.started.get(run)
        return process.exit_code if process else None

    async def sandbox_keeper(self) -> SandboxKeeper:
        return self.keeper

    async def values(self, names: Sequence[str], identity: Identity | None, /) -> tuple[str, ...]:
        return tuple(self.variables[name] for name in names if name in self.variables)

    async def overwrite(self, run: str, offset: int, content: bytes, /) -> None:
        if not self.started[run].shared:
            self.started[run].output[offset : offset + len(content)] = content

    async def output_shared(self, run: str, /) -> bool:
        return run in self.started and self.started[run].shared

    async def drop_output(self, run: str, length: int, /) -> bool:
        process = self.started.get(run)
        if process is None or process.alive or process.shared or not length == len(process.output) > 0:
            return False
        process.output.clear()
        return True

    async def discard(self, folder: str, /) -> None:
        self.discarded.append(folder)

    def _stir(self, run: str) -> None:
        if followed := self._stirs.get(run):
            loop, *_ = followed
            loop.call_soon(self._tell, run)

    def _tell(self, run: str) -> None:
        if followed := self._stirs.get(run):
            _, stir, _ = followed
            stir(run)
