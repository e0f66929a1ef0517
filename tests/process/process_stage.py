"""A place for stories with real processes, of which nothing may be left."""

from __future__ import annotations

import asyncio
import os
import signal
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

import patience
from windlass.core.nouns.run import Identity
from windlass.core.ports.processes import Launch
from windlass.process.detached import DetachedProcesses
from windlass.process.proc import Process, is_alive, living, words_of
from windlass.process.run_folder import RunFolder
from windlass.process.stamp import command_stamp, is_of
from windlass.process.starting.spawner import Spawner

DEADLINE = patience.seconds(20)


class Stage:
    """Detached processes in a folder of their own, under a home that nobody else has."""

    def __init__(self, path: Path) -> None:
        self.home = f"test-{uuid.uuid4().hex}"
        self.path = path
        self.spawner = Spawner()
        self.port = DetachedProcesses(path / "runs", self.home, self.spawner)
        self.token = f"86399.{uuid.uuid4().int % 10**12:012d}"
        """A number of seconds to sleep that nobody else sleeps: it finds processes that hide."""

    async def start(self, run: str, script: str, **environment: str) -> Identity:
        """Start a shell script, in which $NAP is our own number of seconds."""
        return await self.port.start(self.launch(run, "sh", "-c", script, **environment))

    def launch(self, run: str, *argv: str, **environment: str) -> Launch:
        return Launch(run=run, argv=argv, cwd=str(self.path), environment={"NAP": self.token, **environment})

    def said(self, run: str) -> str:
        return RunFolder.of(self.path / "runs", run).read_output(0, 1 << 20).decode()

    async def ended(self, run: str, identity: Identity) -> int | None:
        """Wait for a run's end, and return its exit code."""
        await until(lambda: not is_alive(identity))
        return await self.port.exit_code(run)

    def stamped(self) -> list[Process]:
        """The living processes of our home."""
        return [each for each in living() if is_of(self.home, each.stamp)]

    def command(self, name: str, script: str) -> Identity:
        """Start a shell script as a check is started, in which $NAP is our own number of seconds."""
        given = {"PATH": os.environ["PATH"], "NAP": self.token}
        with Path(os.devnull).open("r+b") as nothing:
            streams = [nothing.fileno()] * 3
            return self.spawner.spawn(["/bin/sh", "-c", script], given, streams, command_stamp(self.home, name))

    def napping(self) -> list[Process]:
        """Those that sleep our own number of seconds, whatever became of their environment."""
        return [each for each in living() if self.token in words_of(each.pid)]

    def stranger(self, command: str) -> Process:
        """One who sleeps in a session of his own that outlived its leader, and comes neither from us nor from a run."""
        script = f'{command} "$NAP" & until grep -q "$NAP" "/proc/$!/cmdline"; do :; done'
        pid = os.posix_spawn("/bin/sh", ["sh", "-c", script], {**os.environ, "NAP": self.token}, setsid=True)
        os.waitpid(pid, 0)
        return self.napping()[0]

    def strike(self) -> list[Process]:
        """End the story: close the port, kill what is left and return it."""
        self.port.close()
        self.spawner.close()
        left = [*self.stamped(), *self.napping()]
        for each in left:
            os.kill(each.pid, signal.SIGKILL)
        return left


def play(path: Path, story: Callable[[Stage], Awaitable[None]]) -> None:
    """Run one story, and see that it leaves no process."""
    stage = Stage(path)
    try:
        asyncio.run(_timed(story(stage)))
    finally:
        left = stage.strike()
    assert left == []


async def _timed(story: Awaitable[None]) -> None:
    async with asyncio.timeout(3 * DEADLINE):
        await story


def when_gone(identity: Identity, gone: asyncio.Event) -> Callable[[str], None]:
    """A stir that sets the event once the process does not live any more."""

    def stir(_: str) -> None:
        if not is_alive(identity):
            gone.set()

    return stir


async def until(condition: Callable[[], object]) -> None:
    """Wait for a fact about processes that are not told what to do."""
    async with asyncio.timeout(DEADLINE):
        while not condition():  # noqa: ASYNC110  no event of ours tells what other processes do
            await asyncio.sleep(0.01)


def descriptors() -> int:
    """How many descriptors this process has."""
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208  paths of descriptors are not wanted
