"""The work that one `windlass send` costs the daemon, from the request to its answer."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

import patience
from windlass.core.agents.definition import Roster
from windlass.core.ports.store import Reading, Writing
from windlass.daemon import boot
from windlass.daemon.boot import Program
from windlass.daemon.lifecycle import HomeLock, hang_up, listen, prepare_home
from windlass.daemon.loops import keep_all
from windlass.daemon.serving.server import DaemonServer
from windlass.daemon.serving.shares import Shares
from windlass.library.agent_files import RepositoryLibrary
from windlass.store.sqlite import SqliteStore
from windlass.web.app import build as build_app

T = TypeVar("T")
AGENT = "---\nname: {name}\nrole: writes code\nprovider: command\n---\nDo what you are told.\n"


class Counts:
    """Store reads and writes, parses of the agents' files and git processes; not of `watch`, which has a rhythm."""

    def __init__(self, git_log: Path) -> None:
        self.reads = self.writes = self.parses = 0
        self.git_log = git_log

    def restart(self) -> None:
        self.reads = self.writes = self.parses = 0
        self.git_log.write_text("")

    @property
    def gits(self) -> int:
        return len(self.git_log.read_text().splitlines())


@pytest.fixture
def counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Counts:
    """Counters around the daemon's real store, library and git."""
    log, programs = tmp_path / "git.log", tmp_path / "bin"
    counts = Counts(log)
    programs.mkdir()
    (programs / "git").write_text(f'#!/bin/sh\necho "$*" >> {log}\nexec {shutil.which("git")} "$@"\n')
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")

    class CountedStore(SqliteStore):
        async def read(self, question: Callable[[Reading], T], /) -> T:
            counts.reads += not is_watching()
            return await super().read(question)

        async def write(self, step: Callable[[Writing], T], /) -> T:
            counts.writes += not is_watching()
            return await super().write(step)

    class CountedLibrary(RepositoryLibrary):
        async def roster(self, checkout: str, /) -> Roster:
            counts.parses += 1
            return await super().roster(checkout)

    monkeypatch.setattr(boot, "SqliteStore", CountedStore)
    monkeypatch.setattr(boot, "RepositoryLibrary", CountedLibrary)
    return counts


def is_watching() -> bool:
    task = asyncio.current_task()
    return task is not None and task.get_name().startswith("watch")


async def post(home: Path, route: str, **given: object) -> Any:
    """What the daemon answers to one request over its socket."""
    body = json.dumps(given).encode()
    head = f"POST {route} HTTP/1.1\r\nHost: windlass\r\nConnection: close\r\nContent-Length: {len(body)}\r\n"
    reader, writer = await asyncio.open_unix_connection(home / "daemon.sock")
    writer.write(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
    status, _, answer = (await reader.read()).partition(b"\r\n")
    writer.close()
    assert b" 201 " in status, answer.decode()
    return json.loads(answer.partition(b"\r\n\r\n")[2])


async def serve(home: Path, story: Callable[[Program], Awaitable[None]], *, moving: bool = False) -> None:
    """Play a story with the whole daemon; unless it is `moving`, without its ticks: only those who call act."""
    leaving = asyncio.Event()
    async with boot.build(home, leaving.set) as program:
        app = build_app(program.engine, program.context, program.authenticator, program.tools)
        server = DaemonServer(app, listen(home), program.identify, Shares(100))
        serving = asyncio.create_task(server.run_until(leaving, program.engine.bell.fall_silent))
        ticks = asyncio.create_task(keep_all(program.engine)) if moving else None
        try:
            await story(program)
        finally:
            if ticks:
                ticks.cancel()
            hang_up(home)
            leaving.set()
            await serving


@pytest.mark.parametrize("mirrored", [False, True], ids=["without chat.md", "with chat.md"])
def test_a_send_reads_the_store_four_times_the_agents_files_once_and_git_never(
    repo: Path, counts: Counts, mirrored: bool
) -> None:
    """At most; also the first message to an agent, which makes it a member of the project."""
    home = Path(os.environ["WINDLASS_HOME"])
    (repo / ".windlass/agents").mkdir(parents=True)
    (repo / ".windlass/agents/coder.md").write_text(AGENT.format(name="coder"))
    (repo / ".windlass/config.toml").write_text('[work]\ncommand = "true"\n')

    if mirrored:
        (repo / ".windlass/.gitignore").write_text("chat.md\n")
        (repo / ".windlass/chat.md").write_text("[human-to-human]: I note this.\n")

    async def story(_: Program) -> None:
        await post(home, "/messages", body="hello", channel="main", path=str(repo))
        for said in ("first", "second"):
            counts.restart()
            sent = await post(home, "/messages", body=said, to=["coder"], path=str(repo))
            assert sent["message"]["to"] == ["coder"]
            assert counts.reads <= 4, counts.reads
            assert (counts.parses, counts.gits) == (1, 0), counts.git_log.read_text()

    prepare_home(home)
    with HomeLock(home):
        asyncio.run(asyncio.wait_for(serve(home, story), patience.seconds(30)))


async def come_to_rest(program: Program, counts: Counts) -> None:
    """Wait until the ticks have nothing more to do: the same counts, several times in a row."""
    same, before = 0, (-1, -1)
    async with asyncio.timeout(patience.seconds(60)):
        while same < 20 or await program.store.scan(lambda store: any(not run.identity for run in store.live_runs())):
            await asyncio.sleep(0.02)
            now = (counts.reads, counts.writes)
            same, before = same + 1 if now == before else 0, now


def test_a_message_to_a_live_agent_is_stored_once_and_asks_git_nothing(repo: Path, counts: Counts) -> None:
    """All ticks together: it is sent, its reader looked at, and its line added to chat.md, with six reads."""
    home = Path(os.environ["WINDLASS_HOME"])
    (repo / ".windlass").mkdir()

    async def story(program: Program) -> None:
        await post(home, "/tasks", title="Sleep", path=str(repo), provider="command", options={"command": "sleep 600"})
        await come_to_rest(program, counts)
        [name] = await program.store.read(lambda store: [agent.id for agent in store.agents()])
        for body in ("first", "second"):
            counts.restart()
            await post(home, "/messages", body=body, to=[name], path=str(repo))
            await come_to_rest(program, counts)
        assert (counts.reads <= 6, counts.writes, counts.gits) == (True, 1, 0), counts.reads
        await program.engine.runs.stop(name, "the test is over")
        await program.engine.settle()

    prepare_home(home)
    (home / "config.toml").write_text('[sandbox]\nmode = "off"\n')
    with HomeLock(home):
        asyncio.run(asyncio.wait_for(serve(home, story, moving=True), patience.seconds(120)))
