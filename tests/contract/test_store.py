"""What every store promises, on disk and in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_builders import (
    CountingClock,
    a_change,
    a_delivery,
    a_message,
    a_project,
    a_run,
    a_task,
    an_agent,
    an_ask,
    putting,
)

from windlass.core import codec
from windlass.core.agent import Agent
from windlass.core.change import Candidate, Change, ChangeState, CheckResult, Hold, Landing
from windlass.core.document import Document
from windlass.core.errors import BadInput, Conflict, Unavailable
from windlass.core.event import GENESIS, Event, digest, link
from windlass.core.message import Delivery, Kind, Message, Receipt
from windlass.core.ports import Noun, Reading, Writing
from windlass.core.project import Project
from windlass.core.run import Cause, Chunk, Identity, Outcome, Run, Usage
from windlass.core.task import Task, TaskState
from windlass.store.memory import MemoryStore
from windlass.store.sqlite import SqliteStore

AnyStore = MemoryStore | SqliteStore

STORES: dict[str, Callable[[Path], AnyStore]] = {
    "memory": lambda folder: MemoryStore(CountingClock()),
    "sqlite": lambda folder: SqliteStore(str(folder / "windlass.db"), CountingClock()),
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AnyStore]:
    opened = STORES[request.param](tmp_path)
    yield opened
    asyncio.run(opened.close())


def everything(store: Reading) -> dict[str, Any]:
    """All a store can say about itself."""
    return {
        "events": store.events(after=0),
        "projects": store.projects(),
        "agents": store.agents(),
        "tasks": store.unfinished_tasks(),
        "runs": store.live_runs(),
        "changes": store.changes(),
        "messages": store.messages("main"),
        "undelivered": store.undelivered(),
        "output": store.chunks("r1"),
        "seq": store.last_seq(),
    }


class TestTransactions:
    def test_a_step_returns_what_its_function_returned(self, store: AnyStore) -> None:
        """A caller gets the function's own value once it is kept."""

        async def story() -> None:
            key = await store.write(lambda writing: writing.next_id(Task))

            assert key == "t1"

        asyncio.run(story())

    def test_what_fails_leaves_no_trace(self, store: AnyStore) -> None:
        """A transaction that raises has written no row, no event, no output and used no id."""

        async def story() -> None:
            await store.write(putting(a_task("t1"), a_run()))
            await store.write(lambda writing: (writing.next_id(Task), writing.append(Chunk("r1", 0, 1.0, b"one"))))
            before = await store.read(everything)

            def step(writing: Writing) -> None:
                writing.next_id(Task)
                writing.next_id(Message)
                writing.record("task.changed", "t1", a_task("t1", title="other"), a_task("t2"), an_agent())
                writing.append(Chunk("r1", 3, 2.0, b"two"))
                writing.append(Chunk("r2", 0, 2.0, b"first"))
                raise ValueError("no")

            with pytest.raises(ValueError, match="no"):
                await store.write(step)

            assert await store.read(everything) == before
            assert await store.read(lambda reading: reading.output_end("r2")) == 0
            ids = await store.write(lambda writing: (writing.next_id(Task), writing.next_id(Message)))
            assert ids == ("t2", "m1")
            assert await store.verify() == ""

        asyncio.run(story())

    def test_a_failing_step_harms_no_other(self, store: AnyStore) -> None:
        """Steps that wait for the same commit succeed and fail on their own."""

        async def story() -> None:
            def step(number: int) -> Callable[[Writing], int]:
                def write(writing: Writing) -> int:
                    writing.record("task.added", f"t{number}", a_task(f"t{number}"))
                    if number % 3 == 0:
                        raise Conflict(f"{number}")
                    return number

                return write

            steps = (store.write(step(number)) for number in range(30))
            results = await asyncio.gather(*steps, return_exceptions=True)

            wanted = [number for number in range(30) if number % 3]
            assert [each for each in results if isinstance(each, int)] == wanted
            assert [str(each) for each in results if isinstance(each, Conflict)] == [
                str(number) for number in range(0, 30, 3)
            ]
            tasks = await store.read(lambda reading: reading.unfinished_tasks())
            assert [task.id for task in tasks] == [f"t{number}" for number in wanted]

        asyncio.run(story())

    def test_fifty_writers_leave_no_gap(self, store: AnyStore) -> None:
        """Event numbers and ids are 1, 2, 3 … however many write at once and fail now and then."""

        async def story() -> None:
            def step(writing: Writing) -> None:
                key = writing.next_id(Task)
                event = writing.record("task.added", key, a_task(key))
                if event.seq % 7 == 0 and not writing.find(Task, "t-odd"):
                    raise RuntimeError("changed its mind")

            async def writer() -> None:
                for _ in range(4):
                    await asyncio.gather(store.write(step), return_exceptions=True)

            await store.write(putting(a_task("t-odd")))
            await asyncio.gather(*(writer() for _ in range(50)))

            events = await store.read(lambda reading: reading.events(after=0, limit=1000))
            assert [event.seq for event in events] == list(range(1, 202))
            assert [event.subject for event in events[1:]] == [f"t{number}" for number in range(1, 201)]
            assert await store.verify() == ""

        asyncio.run(story())

    def test_a_step_sees_what_it_has_written(self, store: AnyStore) -> None:
        """Within a transaction every question is answered with its own writes in."""

        async def story() -> None:
            def step(writing: Writing) -> tuple[list[Task], int, int]:
                writing.record("task.added", "t1", a_task("t1"))
                writing.append(Chunk("r1", 0, 1.0, b"four"))
                return writing.ready_tasks(), writing.last_seq(), writing.output_end("r1")

            assert await store.write(step) == ([a_task("t1")], 2, 4)

        asyncio.run(story())

    def test_a_question_sees_one_moment(self, store: AnyStore) -> None:
        """What is written during a question is not in its answers."""

        async def story() -> None:
            await store.write(putting(a_task("t1")))
            loop = asyncio.get_running_loop()
            meanwhile: list[Future[None]] = []

            def question(reading: Reading) -> tuple[int, int]:
                before = reading.last_seq()
                meanwhile.append(asyncio.run_coroutine_threadsafe(store.write(putting(a_task("t2"))), loop))
                if isinstance(store, SqliteStore):  # in memory a question holds the only thread
                    meanwhile[0].result(timeout=30)
                return before, reading.last_seq()

            assert await store.read(question) == (1, 1)
            await asyncio.wrap_future(meanwhile[0])
            assert await store.read(lambda reading: reading.last_seq()) == 2

        asyncio.run(story())

    def test_a_stray_stop_iteration_reaches_its_caller(self, store: AnyStore) -> None:
        """`next()` on nothing inside a step or question is an error like any other, not a hang."""

        async def story() -> None:
            with pytest.raises((RuntimeError, StopIteration)):
                await asyncio.wait_for(store.write(lambda writing: next(iter(()))), 30)
            with pytest.raises((RuntimeError, StopIteration)):
                await asyncio.wait_for(store.read(lambda reading: next(iter(()))), 30)

        asyncio.run(story())

    def test_a_closed_store_says_so(self, store: AnyStore) -> None:
        """After closing, which may happen twice, nothing is taken and nothing hangs."""

        async def story() -> None:
            await store.close()
            await store.close()

            with pytest.raises(Unavailable, match="closed"):
                await store.write(lambda writing: writing.last_seq())
            with pytest.raises(Unavailable, match="closed"):
                await store.read(lambda reading: reading.last_seq())

        asyncio.run(story())


class TestJournal:
    def test_an_event_carries_what_each_row_became(self, store: AnyStore) -> None:
        """The event has its own words, and every row of the step as it is now."""

        async def story() -> None:
            task, agent = a_task("t1", needs=("t0",)), an_agent(options={"command": "true"})
            event = await store.write(lambda writing: writing.record("task.added", "t1", task, agent, by="human", n=3))

            (kept,) = await store.read(lambda reading: reading.events(after=0))
            assert kept == event
            assert (kept.seq, kept.kind, kept.subject, kept.time) == (1, "task.added", "t1", 1000.0)
            assert kept.data == {"by": "human", "n": 3}
            assert [each["noun"] for each in kept.became] == ["task", "agent"]
            assert codec.revive(Task, kept.became[0]) == task
            assert codec.revive(Agent, kept.became[1]) == agent

        asyncio.run(story())

    def test_events_are_chained(self, store: AnyStore) -> None:
        """Each event's chain is made of the one before and of its own payload's digest."""

        async def story() -> None:
            await store.write(putting(a_task("t1"), a_task("t2")))
            first, second = await store.read(lambda reading: reading.events(after=0))

            def linked(event: Event, before: str) -> str:
                payload = codec.encode({"data": event.data, "became": event.became})
                assert event.digest == digest(payload)
                return link(
                    before,
                    seq=event.seq,
                    time=event.time,
                    kind=event.kind,
                    subject=event.subject,
                    payload_digest=event.digest,
                )

            assert first.chain == linked(first, GENESIS)
            assert second.chain == linked(second, first.chain)
            assert await store.verify() == ""

        asyncio.run(story())

    def test_events_come_by_page(self, store: AnyStore) -> None:
        """A page begins after a number and has at most so many."""

        async def story() -> None:
            await store.write(putting(*(a_task(f"t{number}") for number in range(1, 8))))

            async def page(after: int, limit: int) -> list[int]:
                events = await store.read(lambda reading: reading.events(after=after, limit=limit))
                return [event.seq for event in events]

            assert await page(0, 3) == [1, 2, 3]
            assert await page(3, 3) == [4, 5, 6]
            assert await page(6, 3) == [7]
            assert await page(7, 3) == []
            assert await page(-5, 2) == [1, 2]
            assert await page(0, 0) == await page(0, -1) == []
            assert await store.read(lambda reading: reading.last_seq()) == 7

        asyncio.run(story())

    def test_an_empty_store_is_at_zero(self, store: AnyStore) -> None:
        """Before anything has happened there is no event, and nothing wrong."""

        async def story() -> None:
            assert await store.read(lambda reading: (reading.last_seq(), reading.events(after=0))) == (0, [])
            assert await store.verify() == ""

        asyncio.run(story())

    def test_ids_count_by_kind(self, store: AnyStore) -> None:
        """Tasks, runs, messages and changes are numbered each on their own; others have names."""

        async def story() -> None:
            kinds: tuple[type[Noun], ...] = (Task, Run, Message, Change, Task, Run, Task)
            ids = await store.write(lambda writing: [writing.next_id(kind) for kind in kinds])
            assert ids == ["t1", "r1", "m1", "c1", "t2", "r2", "t3"]
            assert await store.write(lambda writing: writing.next_id(Task)) == "t4"
            with pytest.raises(BadInput, match="Agent"):
                await store.write(lambda writing: writing.next_id(Agent))

        asyncio.run(story())

    def test_a_home_has_an_id(self, store: AnyStore) -> None:
        """The store knows which home it is."""
        assert len(store.home_id) == 36


class TestOutput:
    def test_a_chunk_leaves_an_event_without_its_bytes(self, store: AnyStore) -> None:
        """The event of output says where and how much, not what."""

        async def story() -> None:
            event = await store.write(lambda writing: writing.append(Chunk("r1", 0, 5.0, b"\x00secret\xff")))

            assert (event.kind, event.subject, event.became) == ("run.output", "r1", ())
            assert event.data == {"run": "r1", "offset": 0, "length": 8}
            assert await store.read(lambda reading: reading.events(after=0)) == [event]
            assert await store.read(lambda reading: reading.chunks("r1")) == [Chunk("r1", 0, 5.0, b"\x00secret\xff")]

        asyncio.run(story())

    @pytest.mark.parametrize("offset", [0, 2, 4, 100, -1])
    def test_a_chunk_that_does_not_follow_is_refused(self, store: AnyStore, offset: int) -> None:
        """Output has no hole and no double: a chunk begins where the last one ended."""

        async def story() -> None:
            await store.write(lambda writing: writing.append(Chunk("r1", 0, 1.0, b"one")))
            with pytest.raises(Conflict, match="byte 3"):
                await store.write(lambda writing: writing.append(Chunk("r1", offset, 2.0, b"two")))
            await store.write(lambda writing: writing.append(Chunk("r1", 3, 2.0, b"two")))

            chunks = await store.read(lambda reading: reading.chunks("r1"))
            assert b"".join(chunk.content for chunk in chunks) == b"onetwo"
            assert await store.read(lambda reading: reading.output_end("r1")) == 6

        asyncio.run(story())

    def test_the_first_chunk_begins_at_zero_and_holds_something(self, store: AnyStore) -> None:
        """A run's output starts at its start, and nothing is not output."""

        async def story() -> None:
            with pytest.raises(Conflict):
                await store.write(lambda writing: writing.append(Chunk("r1", 1, 1.0, b"x")))
            with pytest.raises(BadInput):
                await store.write(lambda writing: writing.append(Chunk("r1", 0, 1.0, b"")))
            assert await store.read(lambda reading: reading.output_end("r1")) == 0

        asyncio.run(story())

    def test_reading_from_an_offset_begins_with_the_chunk_that_holds_it(self, store: AnyStore) -> None:
        """From the middle of a chunk one gets that chunk; from its end, the next."""

        async def story() -> None:
            chunks = [Chunk("r1", offset, 1.0, b"0123456789") for offset in range(0, 50, 10)]
            await store.write(lambda writing: [writing.append(chunk) for chunk in chunks])
            await store.write(lambda writing: writing.append(Chunk("r10", 0, 99.0, b"other")))

            async def begins(offset: int, limit: int = 100) -> list[int]:
                chunks = await store.read(lambda reading: reading.chunks("r1", offset=offset, limit=limit))
                return [chunk.offset for chunk in chunks]

            assert await begins(0) == await begins(-3) == [0, 10, 20, 30, 40]
            assert await begins(9, 2) == [0, 10]
            assert await begins(10, 2) == [10, 20]
            assert await begins(49) == [40]
            assert await begins(50) == await begins(500) == await begins(0, 0) == []
            assert await store.read(lambda reading: reading.chunks("r2")) == []

        asyncio.run(story())

    def test_last_output_is_known_for_many_runs(self, store: AnyStore) -> None:
        """Thousands of runs can be asked about at once; the silent ones are left out."""

        async def story() -> None:
            await store.write(lambda writing: [writing.append(Chunk(f"r{each}", 0, 1.0, b"x")) for each in range(9)])
            await store.write(lambda writing: writing.append(Chunk("r7", 1, 7.5, b"y")))

            asked = [f"r{each}" for each in range(300_000)]
            found = await store.read(lambda reading: reading.last_output(asked))

            assert found == {f"r{each}": 1.0 for each in range(9)} | {"r7": 7.5}
            assert await store.read(lambda reading: reading.last_output([])) == {}

        asyncio.run(story())


class TestQuestions:
    def test_find_knows_every_noun_by_its_id(self, store: AnyStore) -> None:
        """Agents are found by address, deliveries by message and reader, documents by project and name."""

        async def story() -> None:
            document = Document(project="p", name="notes", body="…", author="human")
            nouns: list[Noun] = [a_project(), an_agent(instance="pr-7"), a_task(), a_run(), a_change()]
            nouns += [a_message(), a_delivery(), document]
            await store.write(putting(*nouns))

            assert await store.read(lambda reading: reading.find(Agent, "coder@pr-7")) == nouns[1]
            assert await store.read(lambda reading: reading.find(Delivery, "m1/coder")) == a_delivery()
            assert await store.read(lambda reading: reading.find(Document, "p/notes")) == document
            assert await store.read(lambda reading: reading.find(Project, "p")) == a_project()
            assert await store.read(lambda reading: reading.find(Agent, "coder")) is None
            assert await store.read(lambda reading: reading.find(Task, "r1")) is None

        asyncio.run(story())

    def test_writing_again_replaces_and_keeps_the_place(self, store: AnyStore) -> None:
        """A noun that is recorded again is changed where it stands, not doubled."""

        async def story() -> None:
            await store.write(putting(a_task("t1"), a_task("t2"), a_task("t1", title="new", state=TaskState.ACTIVE)))

            tasks = await store.read(lambda reading: reading.unfinished_tasks())
            assert [(task.id, task.title) for task in tasks] == [("t1", "new"), ("t2", "Task t2")]

        asyncio.run(story())

    def test_projects_in_order_and_by_path(self, store: AnyStore) -> None:
        """Projects are listed as they were added, and found by their folder."""

        async def story() -> None:
            await store.write(putting(a_project("zeta"), a_project("alpha")))

            projects = await store.read(lambda reading: reading.projects())
            assert [project.id for project in projects] == ["zeta", "alpha"]
            assert await store.read(lambda reading: reading.project_at("/code/alpha")) == a_project("alpha")
            assert await store.read(lambda reading: reading.project_at("/code")) is None

        asyncio.run(story())

    def test_agents_are_newest_first_and_retired_ones_come_by_page(self, store: AnyStore) -> None:
        """Those at work and the retired are two lists; each begins with the newest created before a time."""

        async def story() -> None:
            working = [an_agent(f"w{each}", created_at=float(each)) for each in (3, 1, 2)]
            gone = [an_agent(f"g{each}", created_at=float(each), retired_at=50.0) for each in range(6)]
            await store.write(putting(*working, *gone, an_agent("w2b", created_at=2.0)))

            async def names(**how: Any) -> list[str]:
                return [agent.name for agent in await store.read(lambda reading: reading.agents(**how))]

            assert await names() == ["w3", "w2b", "w2", "w1"]
            assert await names(before=3.0, limit=2) == ["w2b", "w2"]
            assert await names(retired=True, limit=2) == ["g5", "g4"]
            assert await names(retired=True, before=4.0, limit=3) == ["g3", "g2", "g1"]
            assert await names(limit=0) == await names(limit=-1) == []
            assert await store.read(lambda reading: reading.names_taken()) == {
                *(agent.name for agent in [*working, *gone]),
                "w2b",
            }

        asyncio.run(story())

    def test_a_task_is_ready_when_all_its_needs_are_done(self, store: AnyStore) -> None:
        """Open tasks wait for their needs, also for those that are not there yet or are taken up again."""

        async def story() -> None:
            done = a_task("t1", state=TaskState.DONE)
            tasks = [done, a_task("t2"), a_task("t3", needs=("t1",)), a_task("t4", needs=("t1", "t2"))]
            tasks += [a_task("t5", needs=("t9", "t9")), a_task("t6", needs=("t2",), state=TaskState.ACTIVE)]
            await store.write(putting(*tasks))

            async def ready(limit: int = 100) -> list[str]:
                return [task.id for task in await store.read(lambda reading: reading.ready_tasks(limit=limit))]

            assert await ready() == ["t2", "t3"]
            await store.write(putting(a_task("t2", state=TaskState.DONE)))
            assert await ready() == ["t3", "t4"]
            await store.write(putting(a_task("t9", state=TaskState.DONE)))
            assert await ready() == ["t3", "t4", "t5"]
            await store.write(putting(a_task("t2", state=TaskState.FAILED)))
            assert await ready() == ["t3", "t5"]
            await store.write(putting(a_task("t4", needs=("t1",)), a_task("t3", needs=("t2",))))
            assert await ready() == ["t4", "t5"]
            assert await ready(1) == ["t4"]
            unfinished = await store.read(lambda reading: reading.unfinished_tasks())
            assert [task.id for task in unfinished] == ["t3", "t4", "t5", "t6"]

        asyncio.run(story())

    def test_an_agent_s_task_is_the_newest_it_was_given(self, store: AnyStore) -> None:
        """An agent with several tasks has the last one; tasks of nobody are nobody's."""

        async def story() -> None:
            tasks = [a_task("t1", agent="ann"), a_task("t10", agent="ann"), a_task("t2", agent="bob"), a_task("t3")]
            await store.write(putting(*tasks, a_task("t1", agent="ann", title="changed")))

            assert await store.read(lambda reading: reading.task_of("ann")) == tasks[1]
            assert await store.read(lambda reading: reading.task_of("carl")) is None
            assert await store.read(lambda reading: reading.task_of("")) is None

        asyncio.run(story())

    def test_runs_live_of_an_agent_and_latest(self, store: AnyStore) -> None:
        """A run is live until it has an outcome; an agent's newest is the one with the highest number."""

        async def story() -> None:
            ended = a_run("r1", "ann", outcome=Outcome.CRASHED)
            runs = [ended, a_run("r2", "bob"), a_run("r10", "ann", number=3), a_run("r3", "ann", number=2)]
            await store.write(putting(*runs))

            assert [run.id for run in await store.read(lambda reading: reading.live_runs())] == ["r2", "r10", "r3"]
            assert [run.id for run in await store.read(lambda reading: reading.runs_of("ann"))] == ["r1", "r3", "r10"]
            assert await store.read(lambda reading: reading.runs_of("carl")) == []
            asked = ["ann", "bob", "carl", "ann", *(f"nobody-{each}" for each in range(300_000))]
            latest = await store.read(lambda reading: reading.latest_runs(asked))
            assert {agent: run.id for agent, run in latest.items()} == {"ann": "r10", "bob": "r2"}
            assert await store.read(lambda reading: reading.latest_runs([])) == {}

        asyncio.run(story())

    def test_costs_are_summed_over_all_runs_of_an_agent(self, store: AnyStore) -> None:
        """What an agent has cost is the sum over its runs; one without a run has no cost."""

        async def story() -> None:
            runs = [a_run(f"r{each}", agent="ann", usage=Usage(cost_usd=0.25)) for each in (1, 2, 3)]
            await store.write(putting(*runs, a_run("r4", agent="bob")))

            costs = await store.read(lambda reading: reading.costs(["ann", "bob", "carl", "ann"]))
            assert costs == {"ann": 0.75, "bob": 0.0}

        asyncio.run(story())

    def test_the_queue_is_oldest_first_and_what_ended_newest_first(self, store: AnyStore) -> None:
        """Landed and closed changes are history; every other waits in the queue."""

        async def story() -> None:
            states = dict(zip(["c1", "c2", "c3", "c4", "c5", "c10"], ChangeState, strict=True))
            await store.write(putting(*(a_change(key, state=state, task="t1") for key, state in states.items())))
            await store.write(putting(a_change("c11", task="t2"), a_change("c12")))

            async def ids(**how: Any) -> list[str]:
                return [change.id for change in await store.read(lambda reading: reading.changes(**how))]

            queue = [key for key, state in states.items() if state not in (ChangeState.LANDED, ChangeState.CLOSED)]
            assert await ids() == [*queue, "c11", "c12"]
            assert await ids(limit=2) == queue[:2]
            assert await ids(ended=True) == ["c10", "c3"]
            assert await ids(ended=True, limit=1) == ["c10"]

            newest = await store.read(lambda reading: reading.change_of_task("t1"))
            assert newest is not None
            assert newest.id == "c10"
            assert await store.read(lambda reading: reading.change_of_task("t3")) is None
            assert await store.read(lambda reading: reading.change_of_task("")) is None

        asyncio.run(story())

    def test_messages_stand_in_the_order_of_their_numbers(self, store: AnyStore) -> None:
        """m2 comes before m10, whatever was written first, and a page begins after a number."""

        async def story() -> None:
            keys = ["m10", "m2", "m1", "m21", "m3"]
            await store.write(putting(*map(a_message, keys), a_message("m4", channel="task/t1")))

            async def ids(channel: str = "main", **how: Any) -> list[str]:
                return [each.id for each in await store.read(lambda reading: reading.messages(channel, **how))]

            assert await ids() == ["m1", "m2", "m3", "m10", "m21"]
            assert await ids(after=2, limit=2) == ["m3", "m10"]
            assert await ids("task/t1") == ["m4"]
            assert await ids("nowhere") == []

        asyncio.run(story())

    def test_a_message_without_a_number_is_refused(self, store: AnyStore) -> None:
        """Order needs a number, so an id without one is bad input."""

        async def story() -> None:
            for key in ("hello", "m", "m0", "m01", "m-1", "m1x", "m" + "9" * 40, ""):
                with pytest.raises(BadInput, match="numbered"):
                    await store.write(putting(a_message(key)))
                with pytest.raises(BadInput, match="numbered"):
                    await store.write(putting(a_delivery(key)))
            assert await store.read(lambda reading: reading.last_seq()) == 0

        asyncio.run(story())

    def test_undelivered_is_what_an_agent_has_not_read(self, store: AnyStore) -> None:
        """Pending and delivered mail of agents, oldest message first; people and the system need no delivery."""

        async def story() -> None:
            waiting = [a_delivery("m10"), a_delivery("m2", "ann"), a_delivery("m2", receipt=Receipt.DELIVERED)]
            settled = [a_delivery(f"m{each}", receipt=Receipt(state)) for each, state in ((3, "read"), (4, "acked"))]
            others = [a_delivery("m5", "human"), a_delivery("m5", "system"), a_delivery("m6", receipt=Receipt.FAILED)]
            await store.write(putting(*waiting, *settled, *others))

            async def ids(limit: int = 1000) -> list[str]:
                return [each.id for each in await store.read(lambda reading: reading.undelivered(limit=limit))]

            assert await ids() == ["m2/ann", "m2/coder", "m10/coder"]
            assert await ids(1) == ["m2/ann"]
            await store.write(putting(a_delivery("m2", "ann", receipt=Receipt.READ)))
            assert await ids() == ["m2/coder", "m10/coder"]

        asyncio.run(story())

    def test_a_run_s_deliveries_come_in_order_of_sending(self, store: AnyStore) -> None:
        """What a prompt carried is told in the order in which it was said."""

        async def story() -> None:
            carried = [a_delivery(key, run="r1") for key in ("m10", "m9", "m1")]
            await store.write(putting(*carried, a_delivery("m2"), a_delivery("m3", run="r2")))

            async def ids(run: str) -> list[str]:
                return [each.message for each in await store.read(lambda reading: reading.deliveries_of(run))]

            assert await ids("r1") == ["m1", "m9", "m10"]
            assert await ids("") == []

        asyncio.run(story())

    def test_an_ask_is_open_until_it_is_answered(self, store: AnyStore) -> None:
        """Only questions to the human count, and only an answer closes one."""

        async def story() -> None:
            asks = [an_ask("m10"), an_ask("m2"), an_ask("m3", "ann"), an_ask("m4", to=("ann",)), an_ask("m5")]
            replies = [a_message("m11", kind=Kind.ANSWER, reply_to="m5"), a_message("m12", reply_to="m2")]
            statement = a_message("m13", to=("human",))
            await store.write(putting(*asks, *replies, statement))

            async def ids(**how: Any) -> list[str]:
                return [each.id for each in await store.read(lambda reading: reading.open_asks(**how))]

            assert await ids() == ["m2", "m3", "m10"]
            assert await ids(limit=2) == ["m2", "m3"]
            assert await ids(sender="coder") == ["m2", "m10"]
            await store.write(putting(a_message("m14", kind=Kind.ANSWER, reply_to="m2")))
            assert await ids() == ["m3", "m10"]

        asyncio.run(story())


class TestOddInput:
    @pytest.mark.parametrize(
        "text", ["", "\0", "a\0b", "🦦 naïve ﷽", "\n\r\t\x1b[2J", "'; DROP TABLE tasks; --", "\uffff"]
    )
    def test_any_real_text_comes_back_as_it_was(self, store: AnyStore, text: str) -> None:
        """NUL, emoji, control characters and SQL are text like any other."""

        async def story() -> None:
            task = a_task("t1", title=text, needs=(text,), reason=text)
            event = await store.write(lambda writing: writing.record("task.added", text, task, said=text))

            assert await store.read(lambda reading: reading.find(Task, "t1")) == task
            assert await store.read(lambda reading: reading.events(after=0)) == [event]
            assert event.data == {"said": text}
            assert await store.verify() == ""

        asyncio.run(story())

    def test_half_a_surrogate_pair_is_bad_input(self, store: AnyStore) -> None:
        """What is not Unicode is refused by a sentence wherever it stands, and nothing of its step is kept."""

        async def story() -> None:
            half = "\ud800"
            steps: list[Callable[[Writing], object]] = [
                putting(a_task("t1"), a_task("t2", title=half)),
                putting(a_task(half)),
                putting(an_agent(options={half: "x"})),
                lambda writing: writing.record("task.added", half),
                lambda writing: writing.record(half, "t1"),
                lambda writing: writing.record("task.added", "t1", said=[half]),
                lambda writing: writing.append(Chunk(half, 0, 1.0, b"x")),
            ]
            for step in steps:
                with pytest.raises(BadInput, match="surrogate"):
                    await store.write(step)

            assert await store.read(lambda reading: (reading.last_seq(), reading.unfinished_tasks())) == (0, [])

        asyncio.run(story())

    def test_asking_for_half_a_surrogate_pair_finds_nothing(self, store: AnyStore) -> None:
        """Nothing can have such a name, and others asked for beside it are still found."""

        async def story() -> None:
            half = "\udcff"
            await store.write(putting(a_run("r1", "ann")))
            await store.write(lambda writing: writing.append(Chunk("r1", 0, 1.0, b"x")))

            assert await store.read(lambda reading: reading.find(Task, half)) is None
            assert await store.read(lambda reading: reading.project_at(half)) is None
            assert await store.read(lambda reading: reading.output_end(half)) == 0
            assert await store.read(lambda reading: reading.messages(half)) == []
            assert list(await store.read(lambda reading: reading.latest_runs([half, "ann"]))) == ["ann"]
            assert await store.read(lambda reading: reading.last_output([half, "r1"])) == {"r1": 1.0}

        asyncio.run(story())

    def test_what_json_cannot_carry_is_bad_input(self, store: AnyStore) -> None:
        """Numbers and things that would not come back the same are refused before anything is written."""

        async def story() -> None:
            steps: list[Callable[[Writing], object]] = [
                putting(a_task(created_at=float("nan"))),
                putting(a_task(ended_at=float("inf"))),
                putting(a_run(usage=Usage(cost_usd=float("nan")))),
                putting(a_run(exit_code=2**63)),
                lambda writing: writing.record("task.added", "t1", cost=float("-inf")),
                lambda writing: writing.record("task.added", "t1", thing=object()),
                lambda writing: writing.append(Chunk("r1", 0, float("nan"), b"x")),
            ]
            for step in steps:
                with pytest.raises(BadInput):
                    await store.write(step)

            assert await store.read(lambda reading: reading.last_seq()) == 0

        asyncio.run(story())

    def test_a_refusal_that_is_caught_leaves_no_half(self, store: AnyStore) -> None:
        """A step that goes on after a refused record or chunk has nothing of it, and all of the rest."""

        async def story() -> None:
            def step(writing: Writing) -> None:
                with pytest.raises(BadInput):
                    writing.record("task.added", "t1", a_task("t1"), a_task("t2", title="\ud800"))
                with pytest.raises(Conflict):
                    writing.append(Chunk("r1", 5, 1.0, b"x"))
                writing.record("task.added", "t3", a_task("t3"))

            await store.write(step)

            assert [task.id for task in await store.read(lambda reading: reading.unfinished_tasks())] == ["t3"]
            assert await store.read(lambda reading: reading.last_seq()) == 1
            assert await store.verify() == ""

        asyncio.run(story())


WORDS = st.text(max_size=20)
TIMES = st.floats(allow_nan=False, allow_infinity=False)
MAYBE = st.none() | TIMES
WHOLE = st.integers(-(2**63) + 1, 2**63 - 1)
MANY = st.lists(WORDS, max_size=3).map(tuple)
NUMBERED = st.integers(1, 10**17)
CHECKS = st.builds(
    CheckResult,
    command=WORDS,
    tree=WORDS,
    passed=st.booleans(),
    exit_code=st.none() | WHOLE,
    seconds=TIMES,
    started_at=TIMES,
    reason=WORDS,
    document=WORDS,
)
LANDINGS = st.builds(
    Landing, main=WORDS, before=WORDS, after=WORDS, tree=WORDS, commits=MANY, files=MANY, landed_at=TIMES
)
CANDIDATES = st.builds(Candidate, commit=WORDS, tree=WORDS, before=WORDS, commits=MANY, files=MANY)
NOUNS: dict[type[Any], st.SearchStrategy[Any]] = {
    Project: st.builds(Project, id=WORDS, name=WORDS, path=WORDS, main=WORDS, added_at=TIMES),
    Agent: st.builds(
        Agent,
        name=WORDS,
        instance=WORDS,
        project=WORDS,
        provider=WORDS,
        source=WORDS,
        options=st.dictionaries(WORDS, WORDS, max_size=3),
        attended=st.booleans(),
        persistent=st.booleans(),
        created_at=TIMES,
        retired_at=MAYBE,
    ),
    Task: st.builds(
        Task,
        id=WORDS,
        project=WORDS,
        title=WORDS,
        brief=WORDS,
        parent=WORDS,
        needs=MANY,
        agent=WORDS,
        state=st.sampled_from(TaskState),
        reason=WORDS,
        created_at=TIMES,
        ended_at=MAYBE,
    ),
    Run: st.builds(
        Run,
        id=WORDS,
        agent=WORDS,
        task=WORDS,
        number=WHOLE,
        provider=WORDS,
        cause=st.sampled_from(Cause),
        session=WORDS,
        base=WORDS,
        identity=st.none() | st.builds(Identity, pid=WHOLE, started=WHOLE, boot=WORDS),
        stopping=WORDS,
        said=WORDS,
        outcome=st.none() | st.sampled_from(Outcome),
        reason=WORDS,
        evidence=MANY,
        result=WORDS,
        exit_code=st.none() | WHOLE,
        usage=st.builds(Usage, input_tokens=WHOLE, output_tokens=WHOLE, cost_usd=TIMES),
        starting_at=TIMES,
        started_at=MAYBE,
        ended_at=MAYBE,
    ),
    Message: st.builds(
        Message,
        id=NUMBERED.map("m{}".format),
        channel=WORDS,
        sender=WORDS,
        to=MANY,
        body=WORDS,
        kind=st.sampled_from(Kind),
        reply_to=WORDS,
        sent_at=TIMES,
    ),
    Delivery: st.builds(
        Delivery, message=NUMBERED.map("m{}".format), reader=WORDS, receipt=st.sampled_from(Receipt), run=WORDS
    ),
    Document: st.builds(
        Document, project=WORDS, name=WORDS, body=WORDS, author=WORDS, revision=WHOLE, written_at=TIMES
    ),
    Change: st.builds(
        Change,
        id=WORDS,
        project=WORDS,
        branch=WORDS,
        head=WORDS,
        title=WORDS,
        agent=WORDS,
        task=WORDS,
        undoes=WORDS,
        state=st.sampled_from(ChangeState),
        hold=st.none() | st.sampled_from(Hold),
        reason=WORDS,
        returns=WHOLE,
        candidate=st.none() | CANDIDATES,
        checks=st.lists(CHECKS, max_size=2).map(tuple),
        landing=st.none() | LANDINGS,
        queued_at=TIMES,
    ),
}


class TestRoundTrip:
    @pytest.mark.parametrize("kind", NOUNS, ids=lambda kind: kind.__name__.lower())
    def test_every_noun_comes_back_as_it_went(self, store: AnyStore, kind: type[Any]) -> None:
        """Whatever a noun's fields hold, the store and the journal give back the same noun."""

        @settings(max_examples=25, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
        @given(nouns=st.lists(NOUNS[kind], min_size=1, max_size=4))
        def comes_back(nouns: list[Noun]) -> None:
            async def story() -> None:
                event = await store.write(lambda writing: writing.record("noun.put", "x", *nouns))
                kept = {noun.id: noun for noun in nouns}

                found = await store.read(lambda reading: {key: reading.find(kind, key) for key in kept})

                assert found == kept
                assert [codec.revive(kind, each) for each in event.became] == nouns
                json.loads(codec.encode(event.became))

            asyncio.run(story())

        comes_back()
        assert asyncio.run(store.verify()) == ""
