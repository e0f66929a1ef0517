"""The same store in memory: for simulations and tests, deterministic and gone afterwards."""

from __future__ import annotations

import asyncio
import inspect
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import Any, TypeVar

from fakes.store_output import MemoryOutput, MemoryOutputReading
from windlass.core.errors import Unavailable
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Change, ChangeState
from windlass.core.nouns.document import Document
from windlass.core.nouns.event import Event
from windlass.core.nouns.message import Delivery, Kind, Message, Receipt
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Chunk, Cost, Run
from windlass.core.nouns.task import Task, TaskState
from windlass.core.ports import Clock
from windlass.core.ports.store import FAR_BACK, N, Noun, Reading, Told, Writing
from windlass.core.workflows.instance import Instance
from windlass.store import journal, rows
from windlass.store.audit import JournalAudit

T = TypeVar("T")
K = TypeVar("K")

_UNDELIVERED = (Receipt.PENDING, Receipt.DELIVERED)
_NOT_AGENTS = ("human", "system")
_OVER = (TaskState.DONE, TaskState.CANCELLED)


@dataclass(slots=True)
class _Tables:
    """Everything, in order of arrival."""

    nouns: dict[type[Any], dict[str, Any]] = field(default_factory=lambda: {kind: {} for kind in rows.SHAPES})
    counters: dict[str, int] = field(default_factory=dict)
    positions: dict[str, str] = field(default_factory=dict)
    output: MemoryOutput = field(default_factory=MemoryOutput)
    events: list[Event] = field(default_factory=list)
    tip: journal.Tip = field(default_factory=journal.Tip)


class MemoryReading(MemoryOutputReading):
    """`core.store.Reading` on plain dictionaries."""

    def __init__(self, tables: _Tables) -> None:
        super().__init__(tables.output, lambda: list(self._all(Run)))
        self._tables = tables

    def find(self, kind: type[N], key: str, /) -> N | None:
        return self._tables.nouns[kind].get(key)

    def projects(self, *, forgotten: bool = False) -> list[Project]:
        return [each for each in self._all(Project) if forgotten or each.forgotten_at is None]

    def project_at(self, path: str, /) -> Project | None:
        return next((each for each in self.projects() if each.path == path), None)

    def agents(
        self, *, project: str = "", retired: bool = False, before: float | None = None, limit: int | None = None
    ) -> list[Agent]:
        latest = math.inf if before is None else before
        here = (agent for agent in self._newest(Agent) if project in ("", agent.project))
        found = [agent for agent in here if (agent.retired_at is not None) is retired and agent.created_at < latest]
        return _cut(sorted(found, key=lambda agent: agent.created_at, reverse=True), limit)

    def agents_over(self, *, limit: int | None = None) -> list[Agent]:
        busy = {run.agent for run in self.live_runs()}
        latest = {task.agent: task.state for task in self._all(Task)}
        over = (agent for agent in self.agents() if latest.get(agent.id) in _OVER and agent.id not in busy)
        return _cut(over, limit)

    def agents_named(self, names: Iterable[str], /, *, project: str = "") -> list[Agent]:
        every = (each for name in {*names} for each in self._newest(Agent) if each.name == name)
        return sorted((each for each in every if project in ("", each.project)), key=lambda agent: -agent.created_at)

    def ready_tasks(self, *, limit: int | None = None) -> list[Task]:
        return _cut((task for task in self._all(Task) if task.state == TaskState.OPEN and self._met(task)), limit)

    def unfinished_tasks(self, *, project: str = "", agent: str = "") -> list[Task]:
        here = (task for task in self._all(Task) if project in ("", task.project) and agent in ("", task.agent))
        return [task for task in here if not task.ended]

    def task_of(self, agent: str, /) -> Task | None:
        return next((each for each in self._newest(Task) if agent and each.agent == agent), None)

    def live_runs(self, *, project: str = "") -> list[Run]:
        live = [(run, self.find(Agent, run.agent)) for run in self._all(Run) if run.live]
        return [run for run, agent in live if not project or (agent and agent.project == project)]

    def live_by_project(self) -> dict[str, int]:
        agents = (self.find(Agent, run.agent) for run in self.live_runs())
        return dict(Counter(agent.project for agent in agents if agent))

    def runs_of(self, agent: str, /) -> list[Run]:
        return sorted((each for each in self._all(Run) if each.agent == agent), key=lambda run: run.number)

    def latest_runs(self, agents: Sequence[str], /) -> dict[str, Run]:
        asked = set(agents)
        latest: dict[str, Run] = {}
        for run in self._all(Run):
            if run.agent in asked and (run.agent not in latest or run.number >= latest[run.agent].number):
                latest[run.agent] = run
        return latest

    def costs(self, agents: Sequence[str], /) -> dict[str, Cost]:
        asked = set(agents)
        costs: dict[str, Cost] = {}
        for run in self._all(Run):
            if run.agent in asked:
                costs[run.agent] = costs.get(run.agent, Cost()) + run.usage
        return costs

    def changes(self, *, project: str = "", ended: bool = False, limit: int | None = None) -> list[Change]:
        changes = self._newest(Change) if ended else self._all(Change)
        return _cut((each for each in changes if each.ended is ended and project in ("", each.project)), limit)

    def change_of_task(self, task: str, /) -> Change | None:
        newest = reversed(self.changes_of_task(task))
        return min(newest, key=lambda change: change.ended, default=None)

    def changes_of_task(self, task: str, /) -> list[Change]:
        return [each for each in self._all(Change) if task and each.task == task]

    def messages(self, channel: str, *, after: int = 0, limit: int | None = None) -> list[Message]:
        found = (each for each in self._all(Message) if each.channel == channel and _number(each.id) > after)
        return _cut(sorted(found, key=lambda message: _number(message.id)), limit)

    def undoing(self, change: str, /) -> Change | None:
        undoing = (each for each in self._newest(Change) if change and each.undoes == change)
        return next((each for each in undoing if each.state not in (ChangeState.REJECTED, ChangeState.CLOSED)), None)

    def readers_waiting(self) -> list[str]:
        owed = {each.reader for each in self._all(Delivery) if each.receipt in _UNDELIVERED and each.wakes}
        return sorted(owed.difference(_NOT_AGENTS))

    def answer_to(self, question: str, /) -> Message | None:
        found = (each for each in self._all(Message) if each.kind is Kind.ANSWER and each.reply_to == question)
        return min(found, key=lambda message: _number(message.id), default=None)

    def undelivered(self, *, reader: str = "", limit: int = 1000) -> list[Delivery]:
        found = (
            each for each in self._all(Delivery) if each.receipt in _UNDELIVERED and each.reader not in _NOT_AGENTS
        )
        return _cut(_sent(each for each in found if reader in ("", each.reader)), limit)

    def instances(self, *, project: str = "", live: bool = False) -> list[Instance]:
        here = (instance for instance in self._all(Instance) if project in ("", instance.project))
        return [instance for instance in here if instance.live or not live]

    def documents(self, project: str, begin: str, /) -> list[Document]:
        found = (each for each in self._all(Document) if each.project == project)
        return [each for each in found if each.name.startswith(begin)]

    def revisions(self, document: str, /) -> list[Document]:
        written = (event for event in self._tables.events if event.kind == "document.written")
        return [rows.document(each) for each in written if each.subject == document]

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
        def seen(message: Message) -> bool:
            mine = not viewer or message.seen_by(viewer, home) or self._is_owed(message.id, viewer)
            return mine and (not to or self._is_owed(message.id, to))

        here = (each for each in self._all(Message) if each.project == project and channel in ("", each.channel))
        new = (each for each in here if _number(each.id) > after and seen(each))
        found = sorted(new, key=lambda message: _number(message.id))
        return found[max(len(found) - max(limit, 0), 0) :] if newest else found[: max(limit, 0)]

    def _is_owed(self, message: str, reader: str) -> bool:
        return f"{message}/{reader}" in self._tables.nouns[Delivery]

    def keyed(self, sender: str, key: str, /) -> Message | None:
        found = (each for each in self._all(Message) if key and (each.sender, each.key) == (sender, key))
        return next(found, None)

    def deliveries_to(
        self, reader: str, /, *, acked: bool = False, after: int = 0, limit: int | None = None
    ) -> list[Delivery]:
        found = (each for each in self._all(Delivery) if each.reader == reader and _number(each.message) > after)
        return _cut(_sent(each for each in found if acked or each.receipt is not Receipt.ACKED), limit)

    def receipts(self, message: str, /) -> list[Delivery]:
        return [each for each in self._all(Delivery) if each.message == message]

    def asks_to(self, reader: str, *, limit: int = 100) -> list[Message]:
        return _cut((ask for ask in self._unanswered() if self._is_owed(ask.id, reader)), limit)

    def _unanswered(self) -> list[Message]:
        answered = {each.reply_to for each in self._all(Message) if each.kind is Kind.ANSWER}
        asks = (each for each in self._all(Message) if each.kind is Kind.ASK and each.id not in answered)
        return sorted(asks, key=lambda ask: _number(ask.id))

    def asking(self) -> list[Message]:
        since = {run.agent: run.starting_at for run in self.live_runs()}
        asked = (ask for ask in self._unanswered() if "human" not in ask.to and ask.sender in since)
        return [ask for ask in asked if ask.sent_at >= since[ask.sender]]

    def longest_way(self, run: str, /, *, answered: str = "") -> Message | None:
        keys = {answered, *(each.message for each in self.deliveries_of(run)[-FAR_BACK:])}
        found = [said for key in keys if (said := self.find(Message, key))]
        heard = {_number(each.id): each for each in (*found, *self._sent_during(run))}
        person = max((place for place, each in heard.items() if each.sender == "human"), default=0)
        later = (each for place, each in sorted(heard.items()) if place > person)
        return max(later, key=lambda message: message.hops, default=None)

    def _sent_during(self, run: str) -> list[Message]:
        """What a run's agent was sent after the last that is older than the run."""
        lived = self.find(Run, run)
        if lived is None:
            return []
        owed = reversed(self.deliveries_to(lived.agent, acked=True))
        sent = (said for each in owed if (said := self.find(Message, each.message)))
        return list(takewhile(lambda said: said.sent_at >= lived.starting_at, islice(sent, FAR_BACK)))

    def wrote_to(self, reader: str, senders: Sequence[str], /, *, after: int = 0) -> set[str]:
        owed = (self.find(Message, each.message) for each in self.deliveries_to(reader, acked=True, after=after))
        return {each.sender for each in owed if each} & {*senders}

    def deliveries_of(self, run: str, /) -> list[Delivery]:
        return _sent(each for each in self._all(Delivery) if run and each.run == run)

    def open_asks(self, *, sender: str = "", channel: str = "", limit: int = 100) -> list[Message]:
        asked = (ask for ask in self._unanswered() if "human" in ask.to and channel in ("", ask.channel))
        return _cut((ask for ask in asked if sender in ("", ask.sender)), limit)

    def events(self, *, after: int, limit: int = 500) -> list[Event]:
        begin = max(after, 0)
        return self._tables.events[begin : begin + max(limit, 0)]

    def last_seq(self) -> int:
        return self._tables.tip.seq

    def position(self, key: str, /) -> str:
        return self._tables.positions.get(key, "")

    def page(self, kind: type[T], *, after: int, limit: int) -> list[tuple[int, T]]:
        return list(islice(enumerate(self._all(kind), start=1), after, after + limit))

    def _all(self, kind: type[T]) -> Iterable[T]:
        return self._tables.nouns[kind].values()

    def _newest(self, kind: type[T]) -> Iterator[T]:
        return reversed(self._tables.nouns[kind].values())

    def _met(self, task: Task) -> bool:
        needed = (self._tables.nouns[Task].get(need) for need in task.needs)
        return all(each is not None and each.state == TaskState.DONE for each in needed)


class MemoryWriting(MemoryReading):
    """`core.store.Writing` that remembers how to take everything back."""

    def __init__(self, tables: _Tables, clock: Clock) -> None:
        super().__init__(tables)
        self._clock = clock
        self._undo: list[Callable[[], object]] = []

    def next_id(self, kind: type[Noun], /) -> str:
        letter = rows.prefix(kind)
        count = self._tables.counters.get(letter, 0) + 1
        self._set(self._tables.counters, letter, count)
        return f"{letter}{count}"

    def record(self, kind: str, subject: str, /, *nouns: Noun, **data: Any) -> Event:
        entry = journal.enter(self._tables.tip, kind, subject, now=self._clock.now(), nouns=nouns, data=data)
        for noun in nouns:
            self._set(self._tables.nouns[type(noun)], noun.id, noun)
        return self._add(entry)

    def set_position(self, key: str, value: str, /) -> None:
        self._set(self._tables.positions, rows.check_text(key), rows.check_text(value))

    def append(self, chunk: Chunk, /) -> Event:
        end = self.output_end(chunk.run)
        entry = journal.enter_output(self._tables.tip, chunk, now=self._clock.now(), end=end)
        kept = self._tables.output.chunks.setdefault(chunk.run, [])
        kept.append(chunk)
        self._undo.append(kept.pop)
        return self._add(entry)

    def pack(self, run: str, offset: int, form: str, content: bytes, /) -> None:
        if any(chunk.offset == offset for chunk in self.unpacked(run, limit=sys.maxsize)):
            self._set(self._tables.output.packed, (run, offset), (form, content))

    def roll_back(self) -> None:
        """Leave no trace."""
        for undo in reversed(self._undo):
            undo()

    def _add(self, entry: journal.JournalEntry) -> Event:
        before = self._tables.tip
        self._tables.events.append(entry.event)
        self._tables.tip = entry.tip
        self._undo.append(lambda: self._cut_off(before))
        return entry.event

    def _cut_off(self, tip: journal.Tip) -> None:
        self._tables.events.pop()
        self._tables.tip = tip

    def _set(self, table: dict[K, T], key: K, value: T) -> None:
        if key in table:
            before = table[key]
            self._undo.append(lambda: table.__setitem__(key, before))
        else:
            self._undo.append(lambda: table.pop(key))
        table[key] = value


class MemoryStore:
    """`core.store.Store` without a disk, on the caller's own thread."""

    def __init__(self, clock: Clock, *, home_id: str = "00000000-0000-4000-8000-000000000000") -> None:
        self._clock = clock
        self._home_id = home_id
        self._tables = _Tables()
        self._told: list[Told] = []
        self._closed = False

    @property
    def home_id(self) -> str:
        return self._home_id

    async def write(self, step: Callable[[Writing], T], /) -> T:
        """Others may come first, as with the real one."""
        await self._turn()
        writing, before = MemoryWriting(self._tables, self._clock), len(self._tables.events)
        try:
            result = _plain(step(writing))
        except BaseException:
            writing.roll_back()
            raise
        if events := self._tables.events[before:]:
            for told in self._told:
                told(events)
        return result

    def follow(self, told: Told, /) -> None:
        self._told.append(told)

    async def scan(self, question: Callable[[Reading], T], /) -> T:
        return await self.read(question)

    async def read(self, question: Callable[[Reading], T], /) -> T:
        await self._turn()
        return _plain(question(MemoryReading(self._tables)))

    async def verify(self) -> str:
        await self._turn()
        audit, events = JournalAudit(), self._tables.events
        nouns = (noun for table in self._tables.nouns.values() for noun in table.values())
        walked = ((event, journal.pack(event.data, event.became)) for event in events)
        return audit.journal(walked, self._tables.tip) or audit.tables(nouns, lambda seq: events[seq - 1])

    async def close(self) -> None:
        """Take nothing more."""
        self._closed = True

    async def _turn(self) -> None:
        if self._closed:
            raise Unavailable("The store is closed.")
        await asyncio.sleep(0)


def _cut(found: Iterable[T], limit: int | None) -> list[T]:
    return list(islice(found, None if limit is None else max(limit, 0)))


def _number(key: str) -> int:
    return int(key[1:])


def _sent(found: Iterable[Delivery]) -> list[Delivery]:
    return sorted(found, key=lambda delivery: _number(delivery.message))


def _plain(answer: T) -> T:
    """A transaction reads and decides; whatever must be awaited, such as a question to a process, is asked outside."""
    assert not inspect.isawaitable(answer), f"a transaction returned {answer}"
    return answer
