"""The store's questions, as named SQL on one connection."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Change
from windlass.core.nouns.document import Document
from windlass.core.nouns.event import Event
from windlass.core.nouns.message import Delivery, Message
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Chunk, Cost, Run
from windlass.core.nouns.task import Task
from windlass.core.ports.store import FAR_BACK, N
from windlass.core.runs.packed_output import unpack as unpack_output
from windlass.core.workflows.instance import Instance
from windlass.store import rows
from windlass.store.errors import unavailable
from windlass.store.journal import Tip, unpack

T = TypeVar("T")


class SqlReading:
    """`core.ports.store.Reading` on a connection whose transaction somebody else begins and ends."""

    def __init__(self, connection: sqlite3.Connection, queries: Mapping[str, str], path: str) -> None:
        self._connection = connection
        self._queries = queries
        self._path = path

    def find(self, kind: type[N], key: str, /) -> N | None:
        found = self._run(f"SELECT * FROM {rows.SHAPES[kind].table} WHERE id = :key", {"key": key})
        return rows.read(kind, found[0]) if found else None

    def projects(self, *, forgotten: bool = False) -> list[Project]:
        return self._nouns(Project, "projects", forgotten=forgotten)

    def project_at(self, path: str, /) -> Project | None:
        return _first(self._nouns(Project, "project_at", path=path))

    def agents(
        self, *, project: str = "", retired: bool = False, before: float | None = None, limit: int | None = None
    ) -> list[Agent]:
        name, latest = "agents_retired" if retired else "agents_at_work", math.inf if before is None else before
        return self._nouns(Agent, name, project=project, before=latest, limit=_most(limit))

    def agents_over(self, *, limit: int | None = None) -> list[Agent]:
        return self._nouns(Agent, "agents_over", limit=_most(limit))

    def agents_named(self, names: Iterable[str], /, *, project: str = "") -> list[Agent]:
        return self._nouns(Agent, "agents_named", names=json.dumps([*names]), project=project)

    def ready_tasks(self, *, limit: int | None = None) -> list[Task]:
        return self._nouns(Task, "ready_tasks", limit=_most(limit))

    def unfinished_tasks(self, *, project: str = "", agent: str = "") -> list[Task]:
        if agent:
            return self._nouns(Task, "unfinished_tasks_of", project=project, agent=agent)
        return self._nouns(Task, "unfinished_tasks", project=project)

    def task_of(self, agent: str, /) -> Task | None:
        return _first(self._nouns(Task, "task_of", agent=agent))

    def live_runs(self, *, project: str = "") -> list[Run]:
        return self._nouns(Run, "live_runs", project=project)

    def live_by_project(self) -> dict[str, int]:
        return {row["project"]: row["live"] for row in self._ask("live_by_project")}

    def runs_of(self, agent: str, /) -> list[Run]:
        return self._nouns(Run, "runs_of", agent=agent)

    def latest_runs(self, agents: Sequence[str], /) -> dict[str, Run]:
        return {run.agent: run for run in self._nouns(Run, "latest_runs", agents=json.dumps(list(agents)))}

    def costs(self, agents: Sequence[str], /) -> dict[str, Cost]:
        found = self._ask("costs", agents=json.dumps(list(agents)))
        return {row["value"]: Cost(row["dollars"], row["unpriced"]) for row in found}

    def changes(self, *, project: str = "", ended: bool = False, limit: int | None = None) -> list[Change]:
        name = "changes_ended" if ended else "changes_queue"
        return self._nouns(Change, name, project=project, limit=_most(limit))

    def change_of_task(self, task: str, /) -> Change | None:
        newest = reversed(self.changes_of_task(task))
        return min(newest, key=lambda change: change.ended, default=None)

    def changes_of_task(self, task: str, /) -> list[Change]:
        return self._nouns(Change, "changes_of_task", task=task)

    def undoing(self, change: str, /) -> Change | None:
        return _first(self._nouns(Change, "undoing", change=change))

    def messages(self, channel: str, *, after: int = 0, limit: int | None = None) -> list[Message]:
        return self._nouns(Message, "messages", channel=channel, after=after, limit=_most(limit))

    def readers_waiting(self) -> list[str]:
        return [row["reader"] for row in self._ask("readers_waiting")]

    def answer_to(self, question: str, /) -> Message | None:
        return _first(self._nouns(Message, "answer_to", question=question))

    def undelivered(self, *, reader: str = "", limit: int = 1000) -> list[Delivery]:
        if reader:
            return self._nouns(Delivery, "undelivered_to", reader=reader, limit=max(limit, 0))
        return self._nouns(Delivery, "undelivered", limit=max(limit, 0))

    def instances(self, *, project: str = "", live: bool = False) -> list[Instance]:
        return self._nouns(Instance, "instances_live" if live else "instances", project=project)

    def documents(self, project: str, begin: str, /) -> list[Document]:
        first = f"{project}/{begin}"
        return self._nouns(Document, "documents", project=project, first=first, end=_after(first))

    def revisions(self, document: str, /) -> list[Document]:
        return [rows.document(_event(row)[0]) for row in self._ask("revisions", document=document)]

    def position(self, key: str, /) -> str:
        found = self._ask("position", key=key)
        return str(found[0]["value"]) if found else ""

    def said(
        self,
        project: str,
        /,
        *,
        channel: str = "",
        viewer: str = "",
        home: str = "main",
        to: str = "",
        after: int = 0,
        limit: int = 100,
        newest: bool = True,
    ) -> list[Message]:
        wanted: dict[str, Any] = {"project": project, "after": after, "limit": max(limit, 0)}
        if to:
            name, wanted = "said_to", wanted | {"channel": channel, "viewer": viewer, "home": home, "to": to}
        elif viewer:
            name, wanted = "seen", wanted | {"channel": channel, "viewer": viewer, "home": home}
        else:
            name, wanted = ("said_in", wanted | {"channel": channel}) if channel else ("said", wanted)
        found = self._nouns(Message, f"{name}_{'newest' if newest else 'oldest'}", **wanted)
        return found[::-1] if newest else found

    def keyed(self, sender: str, key: str, /) -> Message | None:
        return _first(self._nouns(Message, "keyed", sender=sender, key=key))

    def deliveries_to(
        self, reader: str, /, *, acked: bool = False, after: int = 0, limit: int | None = None
    ) -> list[Delivery]:
        name = "deliveries_to" if acked else "deliveries_unacked"
        return self._nouns(Delivery, name, reader=reader, after=after, limit=_most(limit))

    def receipts(self, message: str, /) -> list[Delivery]:
        return self._nouns(Delivery, "receipts", message=message)

    def asks_to(self, reader: str, *, limit: int = 100) -> list[Message]:
        return self._nouns(Message, "asks_to", reader=reader, limit=max(limit, 0))

    def asking(self) -> list[Message]:
        return self._nouns(Message, "asking")

    def longest_way(self, run: str, /, *, answered: str = "") -> Message | None:
        return _first(self._nouns(Message, "longest_way", run=run, answered=answered, most=FAR_BACK))

    def wrote_to(self, reader: str, senders: Sequence[str], /, *, after: int = 0) -> set[str]:
        found = self._ask("wrote_to", reader=reader, senders=json.dumps(list(senders)), after=after)
        return {row["sender"] for row in found}

    def deliveries_of(self, run: str, /) -> list[Delivery]:
        return self._nouns(Delivery, "deliveries_of", run=run)

    def open_asks(self, *, sender: str = "", channel: str = "", limit: int = 100) -> list[Message]:
        name = "open_asks_in" if channel else "open_asks_of" if sender else "open_asks"
        return self._nouns(Message, name, sender=sender, channel=channel, limit=max(limit, 0))

    def events(self, *, after: int, limit: int = 500) -> list[Event]:
        return [event for event, _ in self.journal(after=after, limit=limit)]

    def journal(self, *, after: int, limit: int) -> list[tuple[Event, bytes]]:
        """Events, each with its payload as it is kept."""
        return [_event(row) for row in self._ask("events", after=after, limit=max(limit, 0))]

    def tip(self) -> Tip:
        """Where the journal ends, as the table `tip` says."""
        ((seq, chain),) = self._ask("tip")
        return Tip(seq, chain)

    def page(self, kind: type[T], *, after: int, limit: int) -> list[tuple[int, T]]:
        sql = f"SELECT * FROM {rows.SHAPES[kind].table} WHERE place > :after ORDER BY place LIMIT :limit"
        return [(row["place"], rows.read(kind, row)) for row in self._run(sql, {"after": after, "limit": limit})]

    def last_seq(self) -> int:
        return int(self._ask("last_seq")[0][0])

    def output_end(self, run: str, /) -> int:
        found = self._ask("output_end", run=run)
        return int(found[0][0]) if found else 0

    def chunks(self, run: str, *, offset: int = 0, limit: int = 100) -> list[Chunk]:
        return [*map(self._chunk, self._ask("chunks", run=run, offset=offset, limit=max(limit, 0)))]

    def unpacked_runs(self, *, before: float, limit: int) -> list[Run]:
        return self._nouns(Run, "unpacked_runs", before=before, limit=limit)

    def unpacked(self, run: str, /, *, limit: int) -> list[Chunk]:
        return [*map(self._chunk, self._ask("unpacked", run=run, limit=limit))]

    def output_size(self) -> tuple[int, int]:
        ((length, kept),) = self._ask("output_size")
        return length, kept

    def _chunk(self, row: sqlite3.Row) -> Chunk:
        run, offset, at, content, form, length = row
        try:
            return Chunk(run, offset, at, unpack_output(form, content, length))
        except ValueError as error:
            raise unavailable(self._path, error) from error

    def last_output(self, runs: Sequence[str], /) -> dict[str, float]:
        return {row["run"]: row["at"] for row in self._ask("last_output", runs=json.dumps(list(runs)))}

    def _nouns(self, kind: type[T], name: str, **values: Any) -> list[T]:
        return [rows.read(kind, row) for row in self._ask(name, **values)]

    def _ask(self, name: str, **values: Any) -> list[sqlite3.Row]:
        return self._run(self._queries[name], values)

    def _run(self, sql: str, values: Mapping[str, Any]) -> list[sqlite3.Row]:
        try:
            return self._execute(sql, values)
        except UnicodeEncodeError:
            return []  # no row holds half of a surrogate pair, so none can match one

    def _execute(self, sql: str, values: Mapping[str, Any]) -> list[sqlite3.Row]:
        try:
            return self._connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise unavailable(self._path, error) from error


def _event(row: sqlite3.Row) -> tuple[Event, bytes]:
    seq, time, kind, subject, payload, digest, chain = row
    try:
        data, became = unpack(payload)
    except (msgspec.MsgspecError, LookupError, TypeError) as error:
        raise rows.damaged(f"Event {seq}", error) from error
    event = Event(seq=seq, time=time, kind=kind, subject=subject, data=data, became=became, digest=digest, chain=chain)
    return event, payload.encode()


def _after(begin: str) -> str:
    """The first text that comes after all that begin so."""
    return begin[:-1] + chr(ord(begin[-1]) + 1)


def _most(limit: int | None) -> int:
    """A limit for SQL, where -1 is no limit."""
    return -1 if limit is None else max(limit, 0)


def _first(found: list[T]) -> T | None:
    return found[0] if found else None
