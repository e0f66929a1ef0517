"""The writer thread: many transactions per commit, and nobody is told before it is durable."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from windlass.core.errors import Unavailable
from windlass.core.nouns.event import Event
from windlass.core.ports import Clock
from windlass.core.ports.store import Told, Writing
from windlass.store.errors import unavailable
from windlass.store.journal import Tip
from windlass.store.sql_reading import SqlReading
from windlass.store.sql_writing import SqlWriting

T = TypeVar("T")

_LARGEST_GROUP = 128


@dataclass(slots=True)
class _Waiting:
    """A step somebody waits for, and what became of it."""

    step: Callable[[Writing], Any]
    future: asyncio.Future[Any]
    result: Any = None
    events: Sequence[Event] = ()
    error: BaseException | None = None

    def answer(self) -> None:
        if self.future.done():
            return
        if self.error:
            self.future.set_exception(passable(self.error))
        else:
            self.future.set_result(self.result)


class Writer:
    """One thread with the one connection that writes."""

    def __init__(self, connection: sqlite3.Connection, queries: Mapping[str, str], path: str, clock: Clock) -> None:
        self._connection = connection
        self._queries = queries
        self._path = path
        self._clock = clock
        self._inbox: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._door = threading.Lock()
        self._open = True
        self.told: list[Told] = []
        """Called with the events of each group, once it is durable and before anyone who waits goes on."""
        self._thread = threading.Thread(target=self._work, name="windlass-store-writer", daemon=True)
        self._thread.start()

    async def take(self, step: Callable[[Writing], T]) -> T:
        """Run a step as one transaction, and return once it is durable."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        with self._door:
            if not self._open:
                raise closed(self._path)
            self._inbox.put(_Waiting(step, future))
        return await future

    def close(self) -> None:
        """Finish the waiting steps, then end."""
        with self._door:
            if self._open:
                self._open = False
                self._inbox.put(None)
        self._thread.join()

    def _work(self) -> None:
        try:
            while group := self._gather():
                self._carry_out(group)
                self._answer(group)
        finally:
            self._connection.close()

    def _gather(self) -> list[_Waiting]:
        """Wait for one step, and take all others that wait already. An empty group means: end."""
        group: list[_Waiting] = []
        with suppress(Empty):
            while len(group) < _LARGEST_GROUP:
                waiting = self._inbox.get(block=not group)
                if waiting is None:
                    self._inbox.put(None)  # for the next round, which finds nothing else
                    break
                group.append(waiting)
        return group

    def _carry_out(self, group: list[_Waiting]) -> None:
        """Commit the whole group at once. A step that fails is undone alone; if the commit fails, every step fails."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            begun = SqlReading(self._connection, self._queries, self._path).tip()
            end = begun
            for waiting in group:
                end = self._try(waiting, end)
            if end != begun:
                self._connection.execute(self._queries["move_tip"], {"seq": end.seq, "chain": end.chain})
            self._connection.execute("COMMIT")
        except Exception as error:  # noqa: BLE001 - a writer that died would leave everyone waiting
            self._give_up(group, error)

    def _try(self, waiting: _Waiting, tip: Tip) -> Tip:
        """Run one step within its own savepoint. Returns where the journal ends now."""
        if waiting.future.cancelled():
            return tip
        writing = SqlWriting(self._connection, self._queries, self._path, self._clock, tip)
        self._connection.execute("SAVEPOINT step")
        try:
            waiting.result = waiting.step(writing)
            waiting.error = writing.trouble  # a step may not overlook that the database failed it
            waiting.events = writing.recorded
        except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to the one who waits
            waiting.error = error
        if waiting.error:
            self._connection.execute("ROLLBACK TO step")
        self._connection.execute("RELEASE step")
        return tip if waiting.error else writing.end

    def _give_up(self, group: list[_Waiting], error: Exception) -> None:
        with suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        for waiting in group:
            waiting.error = waiting.error or unavailable(self._path, error)

    def _answer(self, group: list[_Waiting]) -> None:
        """Answer everyone in the group, and wake each loop once."""
        loops: dict[asyncio.AbstractEventLoop, list[_Waiting]] = {}
        for waiting in group:
            loops.setdefault(waiting.future.get_loop(), []).append(waiting)
        for loop, its_own in loops.items():
            with suppress(RuntimeError):  # the loop is closed: nobody waits there any more
                loop.call_soon_threadsafe(self._answer_all, its_own)

    def _answer_all(self, group: list[_Waiting]) -> None:
        if events := [event for waiting in group if not waiting.error for event in waiting.events]:
            for told in self.told:
                told(events)
        for waiting in group:
            waiting.answer()


def closed(path: str) -> Unavailable:
    return Unavailable(f"The store {path} is closed.", hint="Run the command again; the daemon is leaving.")


def passable(error: BaseException) -> BaseException:
    """An error as a future can carry it: a stray StopIteration would leave its caller waiting for ever."""
    if not isinstance(error, StopIteration):
        return error
    wrapped = RuntimeError("A transaction raised StopIteration.")
    wrapped.__cause__ = error
    return wrapped
