"""One daemon's life: ports that answer as long as it lasts, and all that can go wrong at any awaited point."""

from __future__ import annotations

import asyncio
import inspect
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast

from sim_loop import SimLoop

from fakes.store import MemoryStore
from windlass.core.errors import Unavailable
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading, Told, Writing

T = TypeVar("T")

CAN_FAIL: dict[str, tuple[bool, ...]] = {
    "git.main": (False, True),
    "git.worktree": (False, True),
    "git.look": (False, True),
    "git.stage": (False, True),
    "git.land": (False, True),
    "git.landed": (False,),
    "git.remove_worktree": (False, True),
    "git.renew": (False, True),
    "setups.prepare": (False, True),
    "processes.start": (False,),
    "workdirs.brief": (False, True),
    "checks.run": (False, True),
}
"""What the world may refuse, and whether it may do so after the deed as well."""

DRIVER = "driver"
"""The task of the test itself."""
TARGETS = (
    *(f"{name}.{when}" for name in CAN_FAIL for when in ("before", "after")),
    *("git.worktree.make", "git.look.snapshot", "git.look.show", "git.land.move", "git.land.moved"),
    *(
        "git.renew.saved",
        "git.renew.rebuilt",
        "git.remove_worktree.saved",
        "git.revert.after",
        "processes.stop.before",
        "processes.stop.after",
    ),
)
"""Places that are worth dying at, and rarely come to by chance."""
PORTS = ("git", "processes", "workdirs", "chats", "checks", "setups", "library")


class Strain:
    """What the world has in store for whoever awaits something. All of it is drawn from one seed."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.fuse: int | None = None
        """At how many awaited points from now the daemon dies."""
        self.target = ""
        """Or the place where it dies."""
        self.refusals: Counter[tuple[str, bool]] = Counter()
        """How often the next call of a name fails, before or after it has done its work."""
        self.calm = False
        """Nothing unusual happens any more."""
        self.meddle: Callable[[], None] = lambda: None
        """What people and agents do in the middle of something."""
        self.moment = ""
        """The place where someone has a second thought."""
        self.thought: Callable[[], None] = lambda: None
        """What they do then, once."""
        self.points: Counter[str] = Counter()
        """Where the daemon could have died."""
        self.deaths: Counter[str] = Counter()

    def kills(self, name: str) -> bool:
        """Whether the daemon dies here."""
        if self.fuse is not None:
            self.fuse -= 1
        return name == self.target or (self.fuse is not None and self.fuse < 0)

    def refuses(self, name: str, *, after: bool) -> None:
        if self.refusals[name, after] > 0:
            self.refusals[name, after] -= 1
            raise Unavailable(f"{name} says no.", hint="Try again.")


class Life:
    """From a daemon's start to its death. After that, nothing it still does has an effect."""

    def __init__(self, strain: Strain) -> None:
        self.strain = strain
        self.over = False

    async def point(self, name: str) -> None:
        """Others have a turn; something may happen; or it ends here."""
        strain = self.strain
        if self.over:
            raise asyncio.CancelledError
        if strain.calm:
            return
        strain.points[name] += 1
        if strain.kills(name):
            self.end(name)
            raise asyncio.CancelledError
        if name == strain.moment:
            strain.moment = ""
            strain.thought()
        drawn = strain.chance.random()
        for _ in range(int(drawn * 3)):
            await asyncio.sleep(0)
        if drawn < 0.015:
            strain.meddle()
        if self.over:
            raise asyncio.CancelledError

    def end(self, name: str) -> None:
        """Die, as by SIGKILL: all work is broken off where it stands."""
        self.over, self.strain.fuse, self.strain.target = True, None, ""
        self.strain.deaths[name] += 1
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)
        for task in loop.tasks():
            if task.get_name() != DRIVER:
                task.cancel()


def lived(ports: Ports, life: Life) -> Ports:
    """The same ports, for one life."""
    strained = {name: cast(Any, LivedPort(name, getattr(ports, name), life)) for name in PORTS}
    return replace(ports, store=LivedStore(cast(MemoryStore, ports.store), life), **strained)


class LivedPort:
    """A port with a point before and after each call that is awaited."""

    def __init__(self, name: str, port: object, life: Life) -> None:
        self._name = name
        self._port = port
        self._life = life

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if inspect.iscoroutinefunction(found):
            found = partial(_around, found, f"{self._name}.{name}", self._life)
        elif name == "follow":
            found = partial(self._follow, found)
        setattr(self, name, found)
        return found

    def _follow(self, follow: Callable[..., None], *given: Any) -> None:
        if not self._life.over:
            follow(*given)


async def _around(call: Callable[..., Any], name: str, life: Life, *given: Any, **named: Any) -> Any:
    await life.point(f"{name}.before")
    life.strain.refuses(name, after=False)
    result = await call(*given, **named)
    await life.point(f"{name}.after")
    life.strain.refuses(name, after=True)
    return result


class LivedStore:
    """A store whose transactions have a point before and after them."""

    def __init__(self, store: MemoryStore, life: Life) -> None:
        self._store = store
        self._life = life

    async def write(self, step: Callable[[Writing], T], /) -> T:
        await self._life.point("store.write.before")
        result = await self._store.write(step)
        await self._life.point("store.write.after")
        return result

    async def read(self, question: Callable[[Reading], T], /) -> T:
        if self._life.over:
            await self._life.point("store.read")
        return await self._store.read(question)

    async def scan(self, question: Callable[[Reading], T], /) -> T:
        return await self.read(question)

    def follow(self, told: Told, /) -> None:
        """A dead daemon is told of nothing."""
        self._store.follow(lambda events: None if self._life.over else told(events))

    async def verify(self) -> str:
        return await self._store.verify()
