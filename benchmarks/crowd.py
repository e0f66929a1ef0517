"""A home full of agents at work: rows in the store, folders on disk, and real processes that sleep."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from whole import SETTINGS

from windlass.core.nouns.agent import Agent
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Identity, Run
from windlass.core.nouns.task import Task, TaskState
from windlass.core.ports.store import Writing
from windlass.daemon.clock import SystemClock
from windlass.daemon.lifecycle import prepare_home
from windlass.process.proc import identify
from windlass.store.sqlite import SqliteStore

PROJECT = Project(id="crowd", name="crowd", path="/", main="main")


@contextmanager
def sleepers(count: int) -> Iterator[list[Identity]]:
    """So many processes that do nothing, each in a session of its own."""
    pids = [os.posix_spawn("/bin/sleep", ["sleep", "3600"], os.environ, setsid=True) for _ in range(count)]
    try:
        yield [each for each in map(identify, pids) if each]
    finally:
        for pid in pids:
            with suppress(ProcessLookupError, ChildProcessError):  # its run may have been ended already
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def populate(home: Path, identities: Sequence[Identity], *, provider: str = "command") -> None:
    """One agent at work on one task for each process."""
    prepare_home(home)
    (home / "config.toml").write_text(SETTINGS)
    for number in range(1, len(identities) + 1):
        for inner in (".git", ".windlass/output"):
            (home / "worktrees" / PROJECT.id / f"a{number}" / inner).mkdir(parents=True)
        (home / "runs" / f"r{number}").mkdir()
    asyncio.run(_write(home, identities, provider))


async def _write(home: Path, identities: Sequence[Identity], provider: str) -> None:
    store, now = SqliteStore(str(home / "windlass.db"), SystemClock()), time.time()

    def step(writing: Writing) -> None:
        writing.record("project.added", PROJECT.id, PROJECT)
        for number, identity in enumerate(identities, start=1):
            agent = Agent(name=f"a{number}", project=PROJECT.id, provider=provider, created_at=float(number))
            task = Task(
                id=writing.next_id(Task), project=PROJECT.id, title="Sleep", agent=agent.id, state=TaskState.ACTIVE
            )
            run = Run(
                id=writing.next_id(Run),
                agent=agent.id,
                task=task.id,
                number=1,
                provider=provider,
                identity=identity,
                starting_at=now,
                started_at=now,
            )
            writing.record("run.started", run.id, agent, task, run)

    await store.write(step)
    await store.close()


@contextmanager
def daemon(home: Path, *, path: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """A daemon of its own for a home, until the end of the block."""
    environment = os.environ | {"WINDLASS_HOME": str(home)} | ({"PATH": path} if path else {})
    argv = [sys.executable, "-m", "windlass.daemon", "--foreground"]
    process = subprocess.Popen(argv, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        process.kill()
        process.wait()


def wait_until_followed(pid: int, count: int, *, within: float = 120.0) -> None:
    """Wait until a process follows so many others by pidfd."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        if _followed(pid, count):
            return
        time.sleep(0.005)
    raise TimeoutError(f"Process {pid} does not follow {count} others.")


def _followed(pid: int, count: int) -> bool:
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)  # noqa: PTH208 - it is asked a hundred times a second
        if len(names) < count:
            return False
        links = (os.readlink(f"{folder}/{name}") for name in names)  # noqa: PTH115 - as above
        return sum(link == "anon_inode:[pidfd]" for link in links) >= count
    except OSError:
        return False
