"""What the engine asks its memory, and tells it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Change
from windlass.core.nouns.document import Document
from windlass.core.nouns.event import Event
from windlass.core.nouns.message import Delivery, Message
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Chunk, Cost, Run
from windlass.core.nouns.task import Task
from windlass.core.workflows.instance import Instance

T = TypeVar("T")
FAR_BACK = 500
"""How many messages may have led to one: of what is older, nothing counts."""
N = TypeVar("N", Agent, Change, Delivery, Document, Instance, Message, Project, Run, Task)
Noun = Agent | Change | Delivery | Document | Instance | Message | Project | Run | Task


class Reading(Protocol):
    """Questions to the store, as it was at one moment."""

    def find(self, kind: type[N], key: str, /) -> N | None:
        """The noun with that id."""
        ...

    def projects(self, *, forgotten: bool = False) -> list[Project]:
        """All that are not forgotten, or also those, in the order of their first use."""
        ...

    def project_at(self, path: str, /) -> Project | None:
        """The project of a folder; not one that is forgotten."""
        ...

    def agents(
        self, *, project: str = "", retired: bool = False, before: float | None = None, limit: int | None = None
    ) -> list[Agent]:
        """Agents at work, or retired ones, newest first; of one project, created before a time, at most `limit`."""
        ...

    def agents_over(self, *, limit: int | None = None) -> list[Agent]:
        """Those not retired whose latest task is done or cancelled, and who have no live run; newest first."""
        ...

    def agents_named(self, names: Iterable[str], /, *, project: str = "") -> list[Agent]:
        """Those that have one of these names, in any instance, also retired ones, newest first; of one project."""
        ...

    def ready_tasks(self, *, limit: int | None = None) -> list[Task]:
        """Open tasks whose needs are all done, oldest first."""
        ...

    def unfinished_tasks(self, *, project: str = "", agent: str = "") -> list[Task]:
        """Tasks that have not ended, oldest first; of one project, or of one agent."""
        ...

    def task_of(self, agent: str, /) -> Task | None:
        """The newest task that is an agent's."""
        ...

    def live_runs(self, *, project: str = "") -> list[Run]:
        """Runs without an outcome, oldest first; of one project's agents."""
        ...

    def live_by_project(self) -> dict[str, int]: ...

    def runs_of(self, agent: str, /) -> list[Run]:
        """An agent's runs, first to last."""
        ...

    def latest_runs(self, agents: Sequence[str], /) -> dict[str, Run]:
        """The newest run of each of these agents, for those that have one."""
        ...

    def costs(self, agents: Sequence[str], /) -> dict[str, Cost]:
        """What all runs of each of these agents have cost so far, for those that have one."""
        ...

    def changes(self, *, project: str = "", ended: bool = False, limit: int | None = None) -> list[Change]:
        """The queue, oldest first; or landed and closed changes, newest first; of one project, at most `limit`."""
        ...

    def change_of_task(self, task: str, /) -> Change | None:
        """The change of a task that is not over; of several, or else, the newest."""
        ...

    def changes_of_task(self, task: str, /) -> list[Change]:
        """All that a task wants or wanted to land, oldest first: one in each repository, and more if one came again."""
        ...

    def undoing(self, change: str, /) -> Change | None:
        """The change that takes another one back, or will; not one that was refused or closed."""
        ...

    def messages(self, channel: str, *, after: int = 0, limit: int | None = None) -> list[Message]:
        """A channel's messages whose number is greater than `after`, in order."""
        ...

    def readers_waiting(self) -> list[str]:
        """Agents to whom something is owed that is to wake them."""
        ...

    def answer_to(self, question: str, /) -> Message | None:
        """The first answer that a question got."""
        ...

    def undelivered(self, *, reader: str = "", limit: int = 1000) -> list[Delivery]:
        """Deliveries to agents, or to one, that no run has carried to its end (pending, delivered), oldest first."""
        ...

    def instances(self, *, project: str = "", live: bool = False) -> list[Instance]:
        """The newest start under each name, oldest first; of one project, and only those that have not ended."""
        ...

    def documents(self, project: str, begin: str, /) -> list[Document]:
        """Those of a project whose names begin so."""
        ...

    def revisions(self, document: str, /) -> list[Document]:
        """All that a document ever was, by the journal, oldest first."""
        ...

    def position(self, key: str, /) -> str:
        """How far something was read or told, as `set_position` kept it; nothing, if it never was."""
        ...

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
        """What was said in a project, in order: the newest so many after a number, or the oldest.

        A viewer sees what is for all in its home channel, what it said, and what is for it; nobody named sees all.
        """
        ...

    def keyed(self, sender: str, key: str, /) -> Message | None:
        """What a sender has said under a key of its own."""
        ...

    def deliveries_to(
        self, reader: str, /, *, acked: bool = False, after: int = 0, limit: int | None = None
    ) -> list[Delivery]:
        """What is owed to a reader and not acknowledged, or all of it, in order of sending."""
        ...

    def receipts(self, message: str, /) -> list[Delivery]:
        """How far a message got with each of its readers."""
        ...

    def asks_to(self, reader: str, *, limit: int = 100) -> list[Message]:
        """Questions to a reader that have no answer yet, oldest first."""
        ...

    def asking(self) -> list[Message]:
        """Questions to agents that a live run has asked and that have no answer yet, oldest first."""
        ...

    def longest_way(self, run: str, /, *, answered: str = "") -> Message | None:
        """Of all that a run may have heard after a person's last word to it, what has come through the most hands.

        It was told some of it; what its agent was sent since it began, it may have looked at; and what it answers, it
        has seen. Of what is older than the last few hundred, nothing counts.
        """
        ...

    def wrote_to(self, reader: str, senders: Sequence[str], /, *, after: int = 0) -> set[str]:
        """Those of these senders who have written to a reader, ever or after the message with that number."""
        ...

    def deliveries_of(self, run: str, /) -> list[Delivery]:
        """What a run's prompt carries, in order of sending."""
        ...

    def open_asks(self, *, sender: str = "", channel: str = "", limit: int = 100) -> list[Message]:
        """Questions to the human that have no answer yet, oldest first; of one sender, in one channel."""
        ...

    def events(self, *, after: int, limit: int = 500) -> list[Event]: ...

    def last_seq(self) -> int:
        """The newest event's number; 0 when nothing has happened."""
        ...

    def output_end(self, run: str, /) -> int:
        """How many bytes of a run's output are kept."""
        ...

    def chunks(self, run: str, *, offset: int = 0, limit: int = 100) -> list[Chunk]:
        """A run's output from an offset on (the first chunk may begin before it)."""
        ...

    def unpacked_runs(self, *, before: float, limit: int) -> list[Run]:
        """Runs that ended before a time and have output which nobody has packed, the longest over first."""
        ...

    def unpacked(self, run: str, /, *, limit: int) -> list[Chunk]:
        """The first of a run's chunks that nobody has packed."""
        ...

    def output_size(self) -> tuple[int, int]:
        """How many bytes of output are kept, and in how many."""
        ...

    def last_output(self, runs: Sequence[str], /) -> dict[str, float]:
        """When each of these runs last said something, for those that did."""
        ...

    def page(self, kind: type[T], *, after: int, limit: int) -> list[tuple[int, T]]:
        """All nouns of a kind in order of arrival, each with its place; those after a place, at most so many."""
        ...


class Writing(Reading, Protocol):
    """One transaction. Every noun is written together with the event that says so."""

    def next_id(self, kind: type[Noun], /) -> str:
        """A new id: t1, r1, m1, c1 …"""
        ...

    def record(self, kind: str, subject: str, /, *rows: Noun, **data: Any) -> Event:
        """Write the rows, and the event that carries them as they have become."""
        ...

    def set_position(self, key: str, value: str, /) -> None:
        """Keep how far something was read or told, in the transaction that takes it in. No event tells of it."""
        ...

    def append(self, chunk: Chunk, /) -> Event:
        """Keep output, with its event (run, offset, length). It must begin where the last one ended."""
        ...

    def pack(self, run: str, offset: int, form: str, content: bytes, /) -> None:
        """Keep the chunk at this offset in another form (`core.runs.packed_output`). It reads the same."""
        ...


Told = Callable[[Sequence[Event]], None]


class Store(Protocol):
    """All that is remembered. A function given to `write` is one transaction: all of it, or nothing."""

    async def write(self, step: Callable[[Writing], T], /) -> T: ...

    def follow(self, told: Told, /) -> None:
        """Call this with the events of each transaction, once they are durable and before its caller goes on."""
        ...

    async def read(self, question: Callable[[Reading], T], /) -> T:
        """Answer a short question, from the store as it is at one moment. Nothing else happens meanwhile."""
        ...

    async def scan(self, question: Callable[[Reading], T], /) -> T:
        """Answer a question that may take long; everything else goes on beside it."""
        ...

    async def verify(self) -> str:
        """What is wrong with the journal's chain; nothing if it is sound."""
        ...
