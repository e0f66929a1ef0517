"""One transaction step on the writer's connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from windlass.core.errors import Unavailable
from windlass.core.nouns.event import Event
from windlass.core.nouns.run import Chunk
from windlass.core.ports import Clock
from windlass.core.ports.store import Noun
from windlass.store import journal, rows
from windlass.store.sql_reading import SqlReading


class SqlWriting(SqlReading):
    """`core.ports.store.Writing` within a savepoint. After an error of the database it does nothing more."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        queries: Mapping[str, str],
        path: str,
        clock: Clock,
        tip: journal.Tip,
    ) -> None:
        super().__init__(connection, queries, path)
        self._clock = clock
        self.end = tip
        self.recorded: list[Event] = []
        self.trouble: Unavailable | None = None

    def next_id(self, kind: type[Noun], /) -> str:
        letter = rows.prefix(kind)
        self._do("count_up", kind=letter)
        return f"{letter}{self._do('counted', kind=letter)[0][0]}"

    def record(self, kind: str, subject: str, /, *nouns: Noun, **data: Any) -> Event:
        entry = journal.enter(self.end, kind, subject, now=self._clock.now(), nouns=nouns, data=data)
        for noun, columns in zip(nouns, entry.columns, strict=True):
            self._execute(rows.UPSERTS[type(noun)], columns)
        return self._add(entry)

    def set_position(self, key: str, value: str, /) -> None:
        self._do("set_position", key=rows.check_text(key), value=rows.check_text(value))

    def append(self, chunk: Chunk, /) -> Event:
        entry = journal.enter_output(self.end, chunk, now=self._clock.now(), end=self.output_end(chunk.run))
        length = len(chunk.content)
        self._do("add_chunk", run=chunk.run, offset=chunk.offset, length=length, at=chunk.at, content=chunk.content)
        return self._add(entry)

    def pack(self, run: str, offset: int, form: str, content: bytes, /) -> None:
        self._do("pack", run=run, offset=offset, form=form, content=content)

    def _add(self, entry: journal.JournalEntry) -> Event:
        event = entry.event
        self._do(
            "add_event",
            seq=event.seq,
            time=event.time,
            kind=event.kind,
            subject=event.subject,
            payload=entry.payload.decode(),
            digest=event.digest,
            chain=event.chain,
        )
        self.end = entry.tip
        self.recorded.append(event)
        return event

    def _do(self, name: str, **values: Any) -> list[sqlite3.Row]:
        return self._execute(self._queries[name], values)

    def _execute(self, sql: str, values: Mapping[str, Any]) -> list[sqlite3.Row]:
        if self.trouble:
            raise self.trouble
        try:
            return super()._execute(sql, values)
        except Unavailable as error:
            self.trouble = error
            raise
