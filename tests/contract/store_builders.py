"""Nouns with everything but what matters filled in, and a clock that counts."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import patience
from fakes.store import MemoryStore
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Change
from windlass.core.nouns.message import Delivery, Kind, Message
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Run
from windlass.core.nouns.task import Task
from windlass.core.ports.store import Noun, Writing
from windlass.core.workflows.instance import Instance
from windlass.store.sqlite import SqliteStore

AnyStore = MemoryStore | SqliteStore


class CountingClock:
    """Every look at it is a second later than the one before."""

    def __init__(self) -> None:
        self._ticks = itertools.count(1000)

    def now(self) -> float:
        return float(next(self._ticks))

    def monotonic(self) -> float:
        return self.now()


def a_project(key: str = "p", **fields: Any) -> Project:
    return Project(**{"id": key, "name": key, "path": f"/code/{key}", "main": "main"} | fields)


def an_agent(name: str = "coder", **fields: Any) -> Agent:
    return Agent(**{"name": name, "project": "p", "provider": "command"} | fields)


def a_task(key: str = "t1", **fields: Any) -> Task:
    return Task(**{"id": key, "project": "p", "title": f"Task {key}"} | fields)


def a_run(key: str = "r1", agent: str = "coder", **fields: Any) -> Run:
    values: dict[str, Any] = {"id": key, "agent": agent, "task": "t1", "number": 1, "provider": "command"}
    return Run(**values | fields)


def a_change(key: str = "c1", **fields: Any) -> Change:
    return Change(**{"id": key, "project": "p", "branch": "work/coder", "head": "abc", "title": key} | fields)


def an_instance(name: str = "default", **fields: Any) -> Instance:
    values = {"name": name, "project": "p", "workflow": "pair", "source": "pair.yaml", "agents": ("coder",)}
    return Instance(**values | fields)


def a_message(key: str = "m1", **fields: Any) -> Message:
    return Message(**{"id": key, "channel": "main", "sender": "human", "to": ("coder",), "body": key} | fields)


def an_ask(key: str, sender: str = "coder", **fields: Any) -> Message:
    return a_message(key, **{"sender": sender, "to": ("human",), "kind": Kind.ASK} | fields)


def a_delivery(message: str = "m1", reader: str = "coder", **fields: Any) -> Delivery:
    return Delivery(message=message, reader=reader, **fields)


def putting(*nouns: Noun) -> Callable[[Writing], None]:
    """A step that records each of these nouns with an event of its own."""

    def step(store: Writing) -> None:
        for noun in nouns:
            store.record(f"{type(noun).__name__.lower()}.put", noun.id, noun)

    return step


def python(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own, which finds what this one finds."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=patience.seconds(60),
        check=False,
    )
