"""Crash points: a name before and after every persisted effect, where a test can end the daemon."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial, wraps
from typing import Any, TypeVar, cast

from windlass.core.nouns.event import Event
from windlass.core.nouns.run import Chunk
from windlass.core.ports import Ports
from windlass.core.ports.store import Noun, Reading, Store, Told, Writing

T = TypeVar("T")

CRASH_AT = "WINDLASS_CRASH_AT"
"""The name at which the daemon is killed; `name#3` means the third time it comes there."""
RECORD = "WINDLASS_STEPS"
"""A file to which every name is written, in order."""

EFFECTS: Mapping[str, tuple[str, ...]] = {
    "git": (
        *("main", "renew", "worktree", "hide", "record_extra_files", "look"),
        *("stage", "mixed", "land", "receipt", "take", "branch", "checkout", "revert", "remove_worktree"),
        "delete_hub",
    ),
    "processes": ("start", "stop", "discard", "drop_output"),
    "workdirs": ("brief", "gather", "mirror"),
    "chats": ("append", "keep", "replace"),
    "setups": ("prepare",),
    "checks": ("run",),
}
"""The methods of each port that change the world. The store's effects are named by their events, git's by commands."""


class Steps:
    """Called with the name of each step. Does nothing unless it was asked to."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        name, _, turn = environment.get(CRASH_AT, "").partition("#")
        self.name = name
        self.turn = int(turn or 1)
        self.record = environment.get(RECORD, "")
        self._seen: Counter[str] = Counter()

    @property
    def wanted(self) -> bool:
        return bool(self.name or self.record)

    def __call__(self, name: str) -> None:
        self._seen[name] += 1
        if self.record:
            with open(self.record, "a", encoding="utf-8") as file:  # noqa: PTH123 - a path from the environment, used as it is
                file.write(f"{name}\n")
        if name == self.name and self._seen[name] == self.turn:
            os.kill(os.getpid(), signal.SIGKILL)


def stepped(ports: Ports, step: Steps) -> Ports:
    """The same ports, with a step before and after each effect."""
    return replace(
        ports,
        store=SteppedStore(ports.store, step),
        **{name: cast(Any, SteppedPort(name, getattr(ports, name), step)) for name in EFFECTS},
    )


class SteppedPort:
    """A port whose effects have steps around them; its questions go straight through."""

    def __init__(self, name: str, port: object, step: Steps) -> None:
        self._port = port
        for effect in EFFECTS[name]:
            setattr(self, effect, _around(getattr(port, effect), f"{name}.{effect}", step))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)


def _around(effect: Callable[..., Awaitable[T]], name: str, step: Steps) -> Callable[..., Awaitable[T]]:
    @wraps(effect)
    async def around(*given: Any, **named: Any) -> T:
        step(f"{name}.before")
        result = await effect(*given, **named)
        step(f"{name}.after")
        return result

    return around


class SteppedStore:
    """A store whose transactions have steps: inside, before they are kept, and after."""

    def __init__(self, store: Store, step: Steps) -> None:
        self._store = store
        self._step = step

    async def write(self, step: Callable[[Writing], T], /) -> T:
        kinds: list[str] = []
        result = await self._store.write(partial(self._transact, step, kinds))
        for kind in kinds:
            self._step(f"store.{kind}.after")
        return result

    def follow(self, told: Told, /) -> None:
        self._store.follow(told)

    async def read(self, question: Callable[[Reading], T], /) -> T:
        return await self._store.read(question)

    async def scan(self, question: Callable[[Reading], T], /) -> T:
        return await self._store.scan(question)

    async def verify(self) -> str:
        return await self._store.verify()

    def _transact(self, step: Callable[[Writing], T], kinds: list[str], writing: Writing) -> T:
        result = step(cast(Writing, Noting(writing, kinds)))
        for kind in kinds:
            self._step(f"store.{kind}.before")
        return result


class Noting:
    """A transaction that remembers the kinds of its events."""

    def __init__(self, writing: Writing, kinds: list[str]) -> None:
        self._writing = writing
        self._kinds = kinds

    def record(self, kind: str, subject: str, /, *rows: Noun, **data: Any) -> Event:
        self._kinds.append(kind)
        return self._writing.record(kind, subject, *rows, **data)

    def append(self, chunk: Chunk, /) -> Event:
        self._kinds.append("run.output")
        return self._writing.append(chunk)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writing, name)
