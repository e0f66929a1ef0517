"""The store on disk: SQLite with one writer thread, and a few that read what is long."""

from __future__ import annotations

import asyncio
import logging
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

from windlass.core.errors import Unavailable
from windlass.core.nouns.event import Event
from windlass.core.ports import Clock
from windlass.core.ports.store import Noun, Reading, Told, Writing
from windlass.store import copies, open_file, rows, schema
from windlass.store.audit import JournalAudit
from windlass.store.errors import unavailable
from windlass.store.reader_threads import ReaderThreads
from windlass.store.sql_reading import SqlReading
from windlass.store.writer import Writer

log = logging.getLogger("windlass")

T = TypeVar("T")

_PAGE = 1000
_QUERY = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


class SqliteStore:
    """`core.ports.store.Store` in one file. Opening refuses a file it cannot trust, and leaves it untouched."""

    def __init__(self, path: str, clock: Clock, *, migrations: Path = schema.MIGRATIONS) -> None:
        rows.learn()
        self._path = path
        self._queries = load_queries()
        connection = open_file.open_writer(Path(path), schema.load(migrations))
        self._home_id = str(connection.execute(self._queries["home_id"]).fetchone()[0])
        self._writer = Writer(connection, self._queries, path, clock)
        self._readers = ReaderThreads(partial(open_file.open_reader, Path(path)), path)
        self._copier = open_file.open_reader(Path(path))
        """For copies alone: it has the file open, also when someone has deleted it."""
        self._copier.execute(self._queries["home_id"]).fetchone()
        self._file, self._folder = _identity(path), _identity(str(Path(path).parent))
        self._copying = threading.Lock()

    @property
    def home_id(self) -> str:
        """The uuid that this store was made with."""
        return self._home_id

    async def write(self, step: Callable[[Writing], T], /) -> T:
        """Run `step` as one transaction: all of it or nothing. It is durable when this returns."""
        return await self._writer.take(step)

    def follow(self, told: Told, /) -> None:
        """Call this with the events of each transaction, once they are durable."""
        self._writer.told.append(told)

    async def read(self, question: Callable[[Reading], T], /) -> T:
        """Answer a short question at once: a thread would take longer to be woken than to answer it."""
        return self._readers.answer(lambda connection: question(self._reading(connection)))

    async def scan(self, question: Callable[[Reading], T], /) -> T:
        """Answer a question that may take long beside all else, on a thread."""
        return await self._readers.ask(lambda connection: question(self._reading(connection)))

    async def verify(self) -> str:
        """Walk the file, the journal and the tables. Returns the first fault, or nothing."""
        try:
            return await self._readers.ask(self._audit)
        except Unavailable as error:
            return str(error)

    def lost(self) -> str:
        """Why what is written does not last any more: the file was deleted or replaced. Nothing: it is there."""
        found = _identity(self._path)
        if found == self._file:
            return ""
        return f"The store {self._path} was {'replaced' if found else 'deleted'} while the daemon ran."

    async def copy(self) -> None:
        """Keep a verified copy beside the store, as it is at one moment. Raises Unavailable."""
        await asyncio.to_thread(self._copy)

    def _copy(self) -> None:
        try:
            with self._copying:
                copies.make_copy(self._copier, Path(self._path))
        except (sqlite3.Error, OSError) as error:
            raise unavailable(str(copies.copy_of(Path(self._path))), error) from error

    async def close(self) -> None:
        """Finish the waiting steps and close the file. One that was deleted is copied then, with all that it knew."""
        parts = (self._readers.close, self._close_copier, self._writer.close)  # the writer tidies up if it is the last
        for part in (*parts[:1], *parts[:0:-1]) if self.lost() else parts:
            await asyncio.to_thread(part)

    def _close_copier(self) -> None:
        try:
            if self.lost() and _identity(str(Path(self._path).parent)) == self._folder:
                self._copy()
                log.error("what the store knew is kept as %s", copies.copy_of(Path(self._path)))
        finally:
            with self._copying:
                self._copier.close()

    def _reading(self, connection: sqlite3.Connection) -> SqlReading:
        return SqlReading(connection, self._queries, self._path)

    def _audit(self, connection: sqlite3.Connection) -> str:
        reading, audit = self._reading(connection), JournalAudit()
        return (
            open_file.check_pages(connection)
            or audit.journal(_journal(reading), reading.tip())
            or audit.tables(_nouns(reading), lambda seq: reading.events(after=seq - 1, limit=1)[0])
        )


def _identity(path: str) -> tuple[int, int] | None:
    """Which file is at a path, if there is one."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def load_queries() -> Mapping[str, str]:
    """Every statement of `queries.sql`, by its name."""
    _, *parts = _QUERY.split(Path(__file__).with_name("queries.sql").read_text("utf-8"))
    return {name: sql.strip().rstrip(";") for name, sql in zip(parts[::2], parts[1::2], strict=True)}


def _journal(reading: SqlReading) -> Iterator[tuple[Event, bytes]]:
    """Every event, by pages."""
    seq = 0
    while page := reading.journal(after=seq, limit=_PAGE):
        yield from page
        seq = page[-1][0].seq


def _nouns(reading: SqlReading) -> Iterator[Noun]:
    """Every row of every table, by pages."""
    for kind in rows.KINDS.values():
        place = 0
        while page := reading.page(kind, after=place, limit=_PAGE):
            yield from (noun for _, noun in page)
            place = page[-1][0]
