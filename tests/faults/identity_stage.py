"""A daemon's socket with real runs, a check and a person before it, whose processes do what a history tells them."""

from __future__ import annotations

import asyncio
import marshal
import os
import re
import select
import signal
import socket
import struct
import sys
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from identity_puppet import FAMILIES, MOST_DESCRIPTORS
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

import patience
from windlass.core.errors import NotAllowed
from windlass.core.nouns.run import Identity
from windlass.core.ports.processes import Launch
from windlass.daemon.serving.server import DaemonServer
from windlass.daemon.serving.shares import Shares
from windlass.process.caller_run import CallerTrace
from windlass.process.detached import DetachedProcesses
from windlass.process.proc import living, send
from windlass.process.stamp import command_stamp, is_of
from windlass.process.starting.spawner import Spawner
from windlass.web.authentication import SocketAuthenticator

PUPPET = str(Path(__file__).with_name("identity_puppet.py"))
RUNS = 2
PERSON, NOBODY = "the person", "nobody"
ANSWER = re.compile(r"<([^>]*)>")
_CREDENTIALS = struct.Struct("3i")
REQUEST = b"GET / HTTP/1.1\r\nHost: windlass\r\nX-Windlass-Run: r1\r\nAuthorization: Bearer r1\r\n\r\n"
"""It lies about who sends it."""


class Gone(Exception):
    """The process at the other end of a line has ended."""


@dataclass(eq=False)
class Owner:
    """Whose processes some are: a run's, the person's, or nobody's."""

    name: str
    root: Member
    leader: Identity | None = None
    """Of a run."""
    over: bool = False
    """Whether the run has ended, or the daemon has forgotten it."""


class Member:
    """One process of a tree, with the line to it."""

    def __init__(self, line: socket.socket, owner: Owner | None = None) -> None:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        line.settimeout(0)
        self.line = line
        self.owner = owner
        self.pid = 0
        self._descriptor = -1

    def hear(self) -> list[int] | None:
        """The descriptors that come with its answer, if there is one by now. Raises Gone."""
        space = socket.CMSG_SPACE(_CREDENTIALS.size) + socket.CMSG_SPACE(4 * MOST_DESCRIPTORS)
        try:
            words, parts, _, _ = self.line.recvmsg(16, space, socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return None
        except ConnectionResetError:
            words, parts = b"", []
        if not words:
            raise Gone
        found = {kind: content for _, kind, content in parts}
        descriptors = found.get(socket.SCM_RIGHTS, b"")
        if not descriptors and not self.pid:
            self._know(_CREDENTIALS.unpack(found[socket.SCM_CREDENTIALS])[0])
        return list(struct.unpack(f"{len(descriptors) // 4}i", descriptors))

    def _know(self, pid: int) -> None:
        try:
            self._descriptor = os.pidfd_open(pid)  # 0 for one that was buried meanwhile
        except OSError:  # the first process of its pid namespace has ended, and so has it
            raise Gone from None
        self.pid = pid

    @property
    def lives(self) -> bool:
        return not self._ended(0)

    def kill(self) -> None:
        """Kill it, and see that it is dead."""
        signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)
        assert self._ended(patience.seconds(20)), f"process {self.pid} does not end"

    def _ended(self, within: float) -> bool:
        return bool(select.select([self._descriptor], [], [], within)[0])

    def close(self) -> None:
        """Hang up: it ends by itself."""
        self.line.close()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


@dataclass(eq=False)
class Call:
    """A connection, and what is known of whoever made it."""

    connection: socket.socket
    owner: Owner
    caller: Member | None
    """Nothing for one that has ended at once."""
    late: bool
    """Made when its run was over."""
    requests: int = 1
    answers: list[str] = field(default_factory=list)

    def _wrongly(self, refused: str) -> bool:
        """Whether it must have been recognized: who called still lives, and so does its run.

        A person is never refused as an agent, unless by then its process had lowered its limit, and was nobody's.
        """
        if self.owner.name == NOBODY or (self.caller is not None and self.caller.owner is not self.owner):
            return False
        lives = self.caller is not None and self.caller.lives and not self.owner.over
        return lives or (self.owner.name == PERSON and "has gone" not in refused)

    def trouble(self) -> str:
        """What is wrong with the answers, if anything is."""
        if len(set(self.answers)) != 1:
            return f"{self.owner.name} was answered as several: {self.answers}"
        answer = self.answers[0]
        if answer.startswith("!"):
            return f"{self.owner.name} was refused: {answer}" if self._wrongly(answer) else ""
        if answer != self.owner.name:
            return f"{self.owner.name} was taken for {answer}"
        return f"{self.owner.name} was heard when it was over" if self.late else ""


class World:
    """The socket, served as the daemon serves it, and the first processes of all trees."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = f"test-{uuid.uuid4().hex}"
        self.place = str(folder / "door")
        self.spawner = Spawner()
        self.port = DetachedProcesses(folder / "runs", self.home, self.spawner)
        self.owners: list[Owner] = []
        self.seen: Counter[str] = Counter()
        """What was answered, and which pids were used again."""
        self._lobby = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._started = 0

    async def open(self) -> None:
        self._lobby.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)  # also for who speaks before he is let in
        self._lobby.bind(str(self.folder / "lobby"))
        self._lobby.listen()
        self._lobby.settimeout(patience.seconds(20))
        for _ in range(RUNS):
            self.owners.append(await self._run())
        self.owners.append(self._person())
        self.owners.append(self._check())

    async def renew(self) -> None:
        """End runs that are over as the daemon does, and start others."""
        for owner in [each for each in self.owners if each.over]:
            await self.port.stop(owner.name, owner.leader, grace=0)
            self.port.forget(owner.name)
            owner.root.close()
            self.owners.remove(owner)
            self.owners.insert(0, await self._run())

    def close(self) -> None:
        """End all that is left."""
        for owner in self.owners:
            owner.root.close()
        patience.until(self._ended, "all processes to end")
        self.port.close()
        self.spawner.close()
        self._lobby.close()

    def _ended(self) -> bool:
        left = [each.identity for each in living() if is_of(self.home, each.stamp)]
        for identity in left:
            send(identity, signal.SIGKILL)
        return not left

    async def _run(self) -> Owner:
        self._started += 1
        run = f"r{self._started}"
        launch = Launch(run=run, argv=tuple(self._words()), cwd=str(self.folder), environment={})
        leader = await self.port.start(launch)
        return self._welcome(run, leader)

    def _person(self) -> Owner:
        """Somebody's process that does not descend from us."""
        pid = os.posix_spawn("/bin/sh", ["sh", "-c", '"$@" &', "sh", *self._words()], {}, setsid=True)
        os.waitpid(pid, 0)
        return self._welcome(PERSON)

    def _check(self) -> Owner:
        with Path(os.devnull).open("r+b") as nothing:
            self.spawner.spawn(self._words(), {}, [nothing.fileno()] * 3, command_stamp(self.home, "check"))
        return self._welcome(NOBODY)

    def _words(self) -> list[str]:
        return [sys.executable, "-I", "-S", PUPPET, str(self.folder / "lobby")]

    def _welcome(self, name: str, leader: Identity | None = None) -> Owner:
        line, _ = self._lobby.accept()
        root = Member(line)
        patience.until(lambda: root.hear() is not None, "the first process of a tree", pause=0.001)
        root.owner = Owner(name, root, leader)
        return root.owner


@asynccontextmanager
async def world(folder: Path) -> AsyncIterator[World]:
    """A world whose socket is served, and of which nothing is left."""
    made, leaving = World(folder), asyncio.Event()
    door = socket.socket(socket.AF_UNIX)
    door.bind(made.place)
    door.listen()
    server = DaemonServer(_who, door, CallerTrace(made.port.leaders).identify, Shares(1000))
    serving = asyncio.create_task(server.run_until(leaving, lambda: None))
    await made.open()
    try:
        yield made
    finally:
        leaving.set()
        await serving
        made.close()


async def _who(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer whom the daemon takes the caller for."""
    try:
        words = SocketAuthenticator().caller(Request(scope)).run or PERSON
    except NotAllowed as error:
        words = f"!{error}"
    await PlainTextResponse(f"<{words}>")(scope, receive, send)


async def order(member: Member, name: str, *values: Any, given: Sequence[int] = (), still: bool) -> list[int]:
    """Tell a process what to do; returns the descriptors that it hands back. Raises Gone.

    While it is done, the daemon stands `still`, or serves.
    """
    try:
        socket.send_fds(member.line, [marshal.dumps((name, values))], given)
    except (BrokenPipeError, ConnectionResetError):
        raise Gone from None
    return [] if name in FAMILIES else await _answer(member, still=still)


async def bear(parent: Member, name: str, *values: Any, still: bool, made: list[int]) -> Member:
    """Let a process have a child; connections that are made before it is there are added. Raises Gone."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    child = Member(ours, parent.owner)
    try:
        with theirs:
            await order(parent, name, *values, given=[theirs.fileno()], still=still)
        while not child.pid:
            made += await _answer(child, still=still)
    except Gone:
        child.close()
        raise
    return child


async def _answer(member: Member, *, still: bool) -> list[int]:
    deadline = patience.Deadline(20)
    while (found := member.hear()) is None:
        if still:
            select.select([member.line], [], [], 1)
        else:
            await asyncio.sleep(0)
        assert not deadline.passed(), f"process {member.pid} does not answer"
    return found
