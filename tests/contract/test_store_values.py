"""What every store takes and gives back the same, and what it refuses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_builders import (
    AnyStore,
    a_run,
    a_task,
    an_agent,
    putting,
)

from windlass.core import codec
from windlass.core.errors import BadInput, Conflict
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Candidate, Change, ChangeState, CheckResult, Hold, Landing
from windlass.core.nouns.document import Document
from windlass.core.nouns.message import Delivery, Kind, Message, Opinion, Receipt, Remark
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Cause, Chunk, Identity, Outcome, Run, Usage
from windlass.core.nouns.task import Task, TaskState
from windlass.core.ports.store import Noun, Writing


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
REMARKS = st.builds(
    Remark,
    head=WORDS,
    turn=WHOLE,
    file=WORDS,
    line=WHOLE,
    blocking=st.booleans(),
    opinion=st.none() | st.sampled_from(Opinion),
)
CANDIDATES = st.builds(Candidate, commit=WORDS, tree=WORDS, before=WORDS, commits=MANY, files=MANY)
NOUNS: dict[type[Any], st.SearchStrategy[Any]] = {
    Project: st.builds(
        Project, id=WORDS, name=WORDS, path=WORDS, main=WORDS, added_at=TIMES, paused_at=MAYBE, pause=WORDS
    ),
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
        reviews=WORDS,
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
        remark=st.none() | REMARKS,
        project=WORDS,
        direct=st.booleans(),
        broadcast=st.booleans(),
        claims=WORDS,
        hops=WHOLE,
        chain=MANY,
    ),
    Delivery: st.builds(
        Delivery,
        message=NUMBERED.map("m{}".format),
        reader=WORDS,
        receipt=st.sampled_from(Receipt),
        run=WORDS,
        wakes=st.booleans(),
        reason=WORDS,
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
        failures=WHOLE,
        candidate=st.none() | CANDIDATES,
        checks=st.lists(CHECKS, max_size=2).map(tuple),
        landing=st.none() | LANDINGS,
        queued_at=TIMES,
        turn=st.integers(0, 2**40),
        rank=WHOLE,
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
