"""The store on disk: SQLite with one writer thread and a few that read."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

from windlass.core.errors import Unavailable
from windlass.core.nouns.event import Event
from windlass.core.ports import Clock
from windlass.core.ports.store import Noun, Reading, Writing
from windlass.store import open_file, rows, schema
from windlass.store.audit import JournalAudit
from windlass.store.reader_threads import ReaderThreads
from windlass.store.sql_reading import SqlReading
from windlass.store.writer import Writer

T = TypeVar("T")

_PAGE = 1000
_QUERY = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


class SqliteStore:
    """`core.store.Store` in one file. Opening refuses a file it cannot trust, and leaves it untouched."""

    def __init__(self, path: str, clock: Clock, *, migrations: Path = schema.MIGRATIONS) -> None:
        rows.learn()
        self._path = path
        self._queries = load_queries()
        connection = open_file.open_writer(Path(path), schema.load(migrations))
        self._home_id = str(connection.execute(self._queries["home_id"]).fetchone()[0])
        self._writer = Writer(connection, self._queries, path, clock)
        self._readers = ReaderThreads(partial(open_file.open_reader, Path(path)), path)

    @property
    def home_id(self) -> str:
        """The uuid this store was born with."""
        return self._home_id

    async def write(self, step: Callable[[Writing], T], /) -> T:
        """Run `step` as one transaction: all of it or nothing. It is durable when this returns."""
        return await self._writer.take(step)

    async def read(self, question: Callable[[Reading], T], /) -> T:
        """Answer `question` from the store as it is at one moment, beside whatever is being written."""
        return await self._readers.ask(lambda connection: question(self._reading(connection)))

    async def verify(self) -> str:
        """Walk the file, the journal and the tables. Returns the first fault, or nothing."""
        try:
            return await self._readers.ask(self._audit)
        except Unavailable as error:
            return str(error)

    async def close(self) -> None:
        """Finish what is waiting and let go of the file."""
        await asyncio.to_thread(self._readers.close)
        await asyncio.to_thread(self._writer.close)

    def _reading(self, connection: sqlite3.Connection) -> SqlReading:
        return SqlReading(connection, self._queries, self._path)

    def _audit(self, connection: sqlite3.Connection) -> str:
        reading, audit = self._reading(connection), JournalAudit()
        return (
            open_file.check_pages(connection)
            or audit.journal(_journal(reading), reading.tip())
            or audit.tables(_nouns(reading), lambda seq: reading.events(after=seq - 1, limit=1)[0])
        )


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
