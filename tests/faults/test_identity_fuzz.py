"""Random trees of processes call the socket: nobody is ever taken for the person, or for another run.

Each history comes from one number. A process belongs to whom its parent belonged to when it was born, whatever it does
then: that is all that the judge knows.
"""

from __future__ import annotations

import asyncio
import os
import random
import resource
import signal
import socket
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from identity_stage import ANSWER, NOBODY, PERSON, REQUEST, Call, Gone, Member, Owner, World, bear, order, world
from pid_namespace import REASON, can_choose_pids, choose_next, play_apart

import patience
import sample
from windlass.process.proc import process, send
from windlass.process.stamp import command_stamp, run_stamp

HISTORIES, APART = range(7000), range(7000, 10_000)
"""Those with the pids that come, and those in a pid namespace in which dead ones are given to others."""
ONCE_BROKEN = (7275,)
"""Histories of those in which somebody was once taken for another: they are played every day."""
SHARDS = 8 if sample.long() else 1
NAMES = (b"x) S 1 1 1 1 (", b"a) Z 0 0 0", b"windlass-run", b"(sd-pam)", b"\n1 (init) S 0")
NAMESPACES = (0x10000000, 0x30000000)
"""Of users, and of users and pids."""
ACTS = {
    **{"fork": 8, "clone_beside": 2, "fork_twice": 6, "flee": 3},
    **{"own_session": 3, "own_group": 1, "be_called": 1, "be_dumpable": 1, "adopt_orphans": 2, "set_stamp": 3},
    **{"leave_namespaces": 1, "lose_first_thread": 1, "become": 0.3},
    **{"call": 14, "call_and_end": 4, "call_with_a_foreign_socket": 2, "write_for_another": 3},
    **{"kill": 5, "wait": 3, "end_run": 0.8, "end_forker": 0.1, "use_pid_again": 6},
}
"""What may happen, and how often."""


@pytest.mark.parametrize("shard", range(SHARDS))
def test_nobody_is_taken_for_another(tmp_path: Path, shard: int) -> None:
    """Whoever calls is its own run, the person, or refused, whatever became of its parents, session and stamp."""
    seen = asyncio.run(play(tmp_path, sample.IDENTITIES.of(HISTORIES)[shard::SHARDS], choosing=False))
    assert min(seen[who] for who in (PERSON, "a run", "refused", "has gone")) > 0, seen


@pytest.mark.skipif(not can_choose_pids(), reason=REASON)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_nobody_is_taken_for_whom_its_pid_belonged_to(shard: int) -> None:
    """Also where a process has the pid of a caller that has just ended, or of a run's first process."""
    seeds = [*ONCE_BROKEN, *sample.IDENTITIES.of(APART)[shard::SHARDS]]
    code = "import test_identity_fuzz; test_identity_fuzz.play_where_pids_are_chosen()"
    told = play_apart(code, *map(str, seeds), within=patience.seconds(60 + len(seeds)))
    assert "used again" in told, told


def play_where_pids_are_chosen() -> None:
    """Play the histories that the command names; prints what was seen."""
    with tempfile.TemporaryDirectory() as folder:
        sys.stdout.write(str(asyncio.run(play(Path(folder), [int(word) for word in sys.argv[1:]], choosing=True))))


async def play(folder: Path, seeds: Sequence[int], *, choosing: bool) -> Counter[str]:
    """Play histories in one world; returns how often which answer was given."""
    async with world(folder) as made:
        for seed in seeds:
            await History(made, seed, choosing=choosing).play()
        return made.seen


class History:
    """One history: who does what, in which order, and who calls meanwhile."""

    def __init__(self, made: World, seed: int, *, choosing: bool) -> None:
        self.world = made
        self.seed = seed
        self.random = random.Random(seed)
        self.members: list[Member] = []
        self.calls: list[Call] = []
        self.free: list[int] = []
        """Pids of those that have ended."""
        self.said: list[str] = []
        self.choosing = choosing
        self.weights = ACTS if choosing else ACTS | {"use_pid_again": 0}
        self.particular: dict[str, Callable[[Member], Awaitable[None]]] = {
            **{"flee": self.flee, "set_stamp": self.set_stamp, "kill": self.kill, "wait": self.wait},
            **{"call": self.call, "call_and_end": self.call_and_end, "write_for_another": self.write_for_another},
            "call_with_a_foreign_socket": self.call_with_a_foreign_socket,
            **{"end_run": self.end_run, "end_forker": self.end_forker, "use_pid_again": self.use_pid_again},
        }

    @property
    def still(self) -> bool:
        """Whether the daemon stands still during an order: so connections wait, and who made them may end."""
        return self.random.random() < 0.6

    async def play(self) -> None:
        """Play it to its end, and judge every answer."""
        try:
            for owner in self.world.owners:
                await self.bear(owner.root, "fork")
            for _ in range(self.random.randint(6, 24)):
                await self.step()
            for call in self.calls:
                await self.heard(call)
        finally:
            for member in self.members:
                member.close()
            for call in self.calls:
                call.connection.close()
        await self.world.renew()

    async def step(self) -> None:
        """Let one process, whoever it is, do one thing. One that has ended since does nothing."""
        act = self.random.choices(list(self.weights), list(self.weights.values()))[0]
        member = self.random.choice(self.members)
        assert member.owner is not None
        self.said.append(f"{member.pid} of {member.owner.name}: {act}")
        with suppress(Gone):
            await self.particular.get(act, partial(self.usual, act))(member)

    # ── what they do ─────────────────────────────────────────────────────────────────────────────────────

    async def usual(self, act: str, member: Member) -> None:
        """An order that needs no more than a value."""
        values: dict[str, Callable[[], object]] = {
            "fork_twice": lambda: self.random.random() < 0.5,
            "be_called": lambda: self.random.choice(NAMES),
            "be_dumpable": lambda: self.random.randint(0, 1),
            "adopt_orphans": lambda: self.random.randint(0, 1),
            "leave_namespaces": lambda: self.random.choice(NAMESPACES),
            "become": self.variables,
        }
        given = [values[act]()] if act in values else []
        if act in ("fork", "fork_twice", "clone_beside"):
            await self.bear(member, act, *given)
        else:
            await order(member, act, *given, still=self.still)

    def variables(self) -> dict[str, str]:
        """An environment that tells lies, or nothing."""
        run = self.random.choice(self.world.owners).name
        told = {"WINDLASS_RUN": run, "WINDLASS_AGENT": "human", "WINDLASS_MARKER": f"{self.world.home}:{run}"}
        return self.random.choice([{}, told])

    async def bear(self, parent: Member, act: str, *given: object) -> Member:
        made: list[int] = []
        try:
            child = await bear(parent, act, *given, still=self.still, made=made)
        finally:
            for connection in made:
                self.take(connection, parent, None)
        self.members.append(child)
        return child

    async def flee(self, member: Member) -> None:
        await self.bear(member, "flee", self.world.place, REQUEST, self.random.randint(1, 4))

    async def set_stamp(self, member: Member) -> None:
        """Look like another's process, or like none of ours. As root one can: that is told in the threat model."""
        assert member.owner is not None and member.owner.root.owner is not None
        stamps = [0, 1 << 62, run_stamp("another home", "r1")]
        if member.owner.root.owner.name == PERSON:  # who lowers the limit is refused; with a run's stamp, ended with it
            member.owner = Owner(NOBODY, member.owner.root)
        else:
            stamps += [run_stamp(self.world.home, owner.name) for owner in self.world.owners]
            stamps += [command_stamp(self.world.home, "check"), *([resource.RLIM_INFINITY] if os.getuid() else [])]
        await order(member, "set_stamp", self.random.choice(stamps), still=self.still)

    async def kill(self, member: Member) -> None:
        if member.lives:
            member.kill()
            self.free.append(member.pid)

    async def wait(self, member: Member) -> None:
        """Let the daemon do some of what there is to do."""
        for _ in range(self.random.randint(1, 20)):
            await asyncio.sleep(0)

    async def end_run(self, member: Member) -> None:
        """End a run's first process, its program or all of it; or let the daemon forget a run whose processes go on."""
        owner = self.random.choice([each for each in self.world.owners if each.leader])
        way = self.random.choice(["leader", "program", "all", "forgotten"])
        self.said.append(f"  {owner.name}: {way}")
        if owner.over or owner.leader is None:
            return
        owner.over = True
        if way == "forgotten":
            self.world.port.forget(owner.name)
            return
        for process_of_run in [each for each in self.members if each.owner is owner and way == "all"]:
            await self.kill(process_of_run)
        if way == "leader":
            send(owner.leader, signal.SIGKILL)
        else:
            owner.root.kill()
        pid = owner.leader.pid
        patience.until(lambda: _ended(pid), "a run's first process to end", pause=0.001)
        self.free += [pid] * 3
        if way == "all" and self.choosing:
            await self.use_pid_again(member, pid)

    async def end_forker(self, _: Member) -> None:
        """Let all runs lose the process that began them, as when the daemon ends."""
        self.world.spawner.close()

    async def use_pid_again(self, member: Member, pid: int = 0) -> None:
        """Give a child the pid of one that has ended, which may have called just before, or have led a run."""
        pid = pid or (self.random.choice(self.free) if self.free else 0)
        if not pid or not _ended(pid):
            return
        patience.until(lambda: process(pid) is None, f"the burial of {pid}", pause=0.001)
        self.free = [each for each in self.free if each != pid]
        choose_next(pid)
        child = await self.bear(member, self.random.choice(["fork", "clone_beside"]))
        self.world.seen["used again"] += child.pid == pid
        self.said.append(f"  the child of {member.pid} is {child.pid}")
        if self.random.random() < 0.5:
            await order(child, "own_session", still=self.still)
        await self.call(child)

    # ── who calls ────────────────────────────────────────────────────────────────────────────────────────

    async def call(self, member: Member) -> None:
        """Call, several times at once on one connection, and keep it for all children or not."""
        requests = self.random.randint(1, 3)
        words = (self.world.place, REQUEST * requests, self.random.choice(["keep", "drop"]))
        for connection in await order(member, "call", *words, still=self.still):
            self.take(connection, member, member, requests)

    async def call_and_end(self, member: Member) -> None:
        for connection in await order(member, "call", self.world.place, REQUEST, "end", still=self.still):
            self.take(connection, member, member)
            self.free += [member.pid] * 3

    async def call_with_a_foreign_socket(self, member: Member) -> None:
        """Connect a socket that another process has made: who connects is the caller."""
        other = self.random.choice(self.members)
        for made in await order(other, "open_socket", still=self.still):
            words = (self.world.place, REQUEST, "drop")
            try:
                found = await order(member, "call", *words, given=[made], still=self.still)
            finally:
                os.close(made)
            for connection in found:
                self.take(connection, member, member)

    async def write_for_another(self, member: Member) -> None:
        """Get a connection of another, and send a request on it: it stays the connection of whoever made it."""
        if self.calls:
            call = self.random.choice(self.calls)
            await order(member, "write", REQUEST, given=[call.connection.fileno()], still=self.still)
            call.requests += 1

    def take(self, connection: int, member: Member, caller: Member | None, requests: int = 1) -> None:
        """Remember a connection, and whose it is."""
        assert member.owner is not None
        made = socket.socket(fileno=connection)
        made.settimeout(0)
        self.calls.append(Call(made, member.owner, caller, member.owner.over, requests))

    async def heard(self, call: Call) -> None:
        """Read the answers to a connection's requests, and judge them."""
        loop, text = asyncio.get_running_loop(), ""
        async with asyncio.timeout(patience.seconds(20)):
            while len(call.answers) < call.requests:
                some = await loop.sock_recv(call.connection, 1 << 16)
                text += some.decode()
                call.answers = ANSWER.findall(text)
                assert some, self.told(f"the daemon hung up on {call.owner.name} after {call.answers}")
        answer = call.answers[0]
        kind = "has gone" if "has gone" in answer else "refused" if answer.startswith("!") else answer
        self.world.seen[kind if kind in (PERSON, "has gone", "refused") else "a run"] += 1
        trouble = call.trouble()
        assert not trouble, self.told(trouble)

    def told(self, trouble: str) -> str:
        return "\n".join([f"history {self.seed}: {trouble}", *self.said])


def _ended(pid: int) -> bool:
    found = process(pid)
    return found is None or found.gone
