"""What every store promises, on disk and in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from store_builders import (
    AnyStore,
    a_run,
    a_task,
    an_agent,
    putting,
)

import patience
from windlass.core import codec
from windlass.core.errors import BadInput, Conflict, Unavailable
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Change
from windlass.core.nouns.event import GENESIS, Event, digest, link
from windlass.core.nouns.message import Message
from windlass.core.nouns.run import Chunk, Run
from windlass.core.nouns.task import Task
from windlass.core.ports.store import Noun, Reading, Writing
from windlass.store.sqlite import SqliteStore


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
            assert [result for result in results if isinstance(result, int)] == wanted
            assert [str(result) for result in results if isinstance(result, Conflict)] == [
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
                    meanwhile[0].result(timeout=patience.seconds(30))
                return before, reading.last_seq()

            assert await store.scan(question) == (1, 1)
            await asyncio.wrap_future(meanwhile[0])
            assert await store.read(lambda reading: reading.last_seq()) == 2

        asyncio.run(story())

    def test_a_stray_stop_iteration_reaches_its_caller(self, store: AnyStore) -> None:
        """`next()` on nothing inside a step or question is an error like any other, not a hang."""

        async def story() -> None:
            with pytest.raises((RuntimeError, StopIteration)):
                await asyncio.wait_for(store.write(lambda writing: next(iter(()))), patience.seconds(30))
            with pytest.raises((RuntimeError, StopIteration)):
                await asyncio.wait_for(store.read(lambda reading: next(iter(()))), patience.seconds(30))

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
            with pytest.raises(Unavailable, match="closed"):
                await store.scan(lambda reading: reading.last_seq())

        asyncio.run(story())


class TestPositions:
    def test_a_position_is_kept_with_its_step_and_without_an_event(self, store: AnyStore) -> None:
        """The last value counts; a step that fails moves no position, and the journal does not tell of any."""

        def failing(writing: Writing) -> None:
            writing.set_position("p/system/chat/coder", "9")
            writing.record("task.added", "t1", a_task("t1"))
            raise Conflict("no")

        async def story() -> None:
            assert await store.read(lambda reading: reading.position("p/system/chat/coder")) == ""
            await store.write(lambda writing: writing.set_position("p/system/chat/coder", "1"))
            await store.write(lambda writing: writing.set_position("p/system/chat/coder", "two\nlines"))
            with pytest.raises(Conflict):
                await store.write(failing)
            assert await store.read(lambda reading: reading.position("p/system/chat/coder")) == "two\nlines"
            assert await store.read(lambda reading: reading.position("p/system/chat/other")) == ""
            assert await store.read(lambda reading: reading.last_seq()) == 0
            assert await store.verify() == ""

        asyncio.run(story())

    def test_a_text_that_no_column_holds_is_refused(self, store: AnyStore) -> None:
        """Half of a surrogate pair is refused, not lost."""

        async def story() -> None:
            with pytest.raises(BadInput, match="surrogate"):
                await store.write(lambda writing: writing.set_position("p/radar/a/b", "\ud800"))

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
