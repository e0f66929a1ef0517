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
from dataclasses import replace
from pathlib import Path

from whole import SETTINGS

from windlass.core.nouns.agent import Agent
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Identity, Run
from windlass.core.nouns.task import Task, TaskState
from windlass.core.ports.store import Writing
from windlass.daemon.clock import SystemClock
from windlass.daemon.lifecycle import prepare_home
from windlass.git import HubGit
from windlass.process.proc import identify
from windlass.store.sqlite import SqliteStore

PROJECT = Project(id="crowd", name="crowd", path="/", main="main")
AT_ONCE = 4
"""Worktrees that are made at the same time."""


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


def populate(
    home: Path, identities: Sequence[Identity], *, provider: str = "command", repository: Path | None = None
) -> None:
    """One agent at work on one task for each process. With a repository, each has a real worktree of it."""
    prepare_home(home)
    (home / "config.toml").write_text(SETTINGS)
    project = replace(PROJECT, path=str(repository)) if repository else PROJECT
    names = [f"a{number}" for number in range(1, len(identities) + 1)]
    agents = [
        Agent(name=name, project=project.id, provider=provider, created_at=float(number))
        for number, name in enumerate(names, start=1)
    ]
    if repository:
        asyncio.run(_make_worktrees(home, project, agents))
    for number, name in enumerate(names, start=1):
        for inner in (".git", ".windlass/output"):
            (home / "worktrees" / project.id / name / inner).mkdir(parents=True, exist_ok=True)
        (home / "runs" / f"r{number}").mkdir()
    asyncio.run(_write(home, project, agents, identities))


async def _make_worktrees(home: Path, project: Project, agents: Sequence[Agent]) -> None:
    git = HubGit(home, environment=os.environ)
    for some in (agents[at : at + AT_ONCE] for at in range(0, len(agents), AT_ONCE)):
        await asyncio.gather(*(git.worktree(project, agent) for agent in some))


async def _write(home: Path, project: Project, agents: Sequence[Agent], identities: Sequence[Identity]) -> None:
    store, now = SqliteStore(str(home / "windlass.db"), SystemClock()), time.time()

    def step(writing: Writing) -> None:
        writing.record("project.added", project.id, project)
        for agent, identity in zip(agents, identities, strict=True):
            task = Task(
                id=writing.next_id(Task), project=project.id, title="Sleep", agent=agent.id, state=TaskState.ACTIVE
            )
            run = Run(
                id=writing.next_id(Run),
                agent=agent.id,
                task=task.id,
                number=1,
                provider=agent.provider,
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


def busy(pid: int) -> float:
    """Seconds that a process has been on a processor, to the nanosecond: /proc/PID/stat counts in hundredths."""
    threads = Path(f"/proc/{pid}/task")
    return sum(int((path / "schedstat").read_text().split()[0]) for path in threads.iterdir()) / 1e9
