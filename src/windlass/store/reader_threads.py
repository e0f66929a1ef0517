"""Questions, each within one snapshot: short ones are answered at once, long ones by a few threads."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import TypeVar

from windlass.store.errors import unavailable
from windlass.store.writer import closed, passable

T = TypeVar("T")

_SIZE = 4


class ReaderThreads:
    """As many connections as threads, opened when first needed."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], path: str) -> None:
        self._connect = connect
        self._path = path
        self._idle: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        self._threads = ThreadPoolExecutor(_SIZE, "windlass-store-reader")
        self._open = True

    async def ask(self, question: Callable[[sqlite3.Connection], T]) -> T:
        """Answer a question on a thread, as the store was at one moment."""
        try:
            answer = asyncio.get_running_loop().run_in_executor(self._threads, self.answer, question)
        except RuntimeError as error:
            raise closed(self._path) from error
        return await answer

    def close(self) -> None:
        """Answer the waiting questions, then close the connections."""
        self._threads.shutdown()
        self._open = False
        while not self._idle.empty():
            self._idle.get().close()

    def answer(self, question: Callable[[sqlite3.Connection], T]) -> T:
        """Answer a question here and now, on a connection of its own."""
        if not self._open:
            raise closed(self._path)
        connection = self._borrow()
        try:
            connection.execute("BEGIN")
            return question(connection)
        except StopIteration as error:
            raise passable(error) from error
        except sqlite3.Error as error:
            raise unavailable(self._path, error) from error
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._idle.put(connection)

    def _borrow(self) -> sqlite3.Connection:
        try:
            return self._idle.get_nowait()
        except Empty:
            pass
        try:
            return self._connect()
        except sqlite3.Error as error:
            raise unavailable(self._path, error) from error
