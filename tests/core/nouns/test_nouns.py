"""The steps of tasks, changes, runs and deliveries: tables, and walks through them in any order."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core import codec
from windlass.core.errors import NotAllowed
from windlass.core.nouns.change import Candidate, Change, ChangeState, CheckResult, Hold, Landing
from windlass.core.nouns.message import Delivery, Receipt
from windlass.core.nouns.run import Chunk, Identity, Outcome, Run, Usage
from windlass.core.nouns.task import Task, TaskState

TASK = Task(id="t1", project="p", title="Fix it")
CHANGE = Change(id="c1", project="p", branch="work/otter", head="abc", title="Fix it")
RUN = Run(id="r1", agent="otter", task="t1", number=1, provider="scripted")
DELIVERY = Delivery(message="m1", reader="otter")
IDENTITY = Identity(pid=4711, started=99, boot="boot")
ORDER = [Receipt.PENDING, Receipt.DELIVERED, Receipt.READ, Receipt.ACKED]

task_states = st.sampled_from(TaskState)
change_states = st.sampled_from(ChangeState)
receipts = st.sampled_from(Receipt)


class TestTask:
    @pytest.mark.parametrize(
        "way",
        [
            "active landing done",
            "active landing active landing done",
            "active waiting active landing done",
            "active done",
            "active failed cancelled",
            "active landing waiting active",
        ],
    )
    def test_the_ways_of_a_task(self, way: str) -> None:
        """Straight through, sent back, asked, nothing to land, taken up again."""
        task = TASK
        steps = way.split()
        for now, state in enumerate(steps):
            task = task.move(TaskState(state), now=float(now), reason=state)

        assert (task.state, task.reason) == (steps[-1], steps[-1])

    @given(st.lists(task_states))
    def test_a_task_has_an_end_time_exactly_when_it_has_ended(self, way: list[TaskState]) -> None:
        """However it got there; a refused step changes nothing."""
        task = TASK
        for now, state in enumerate(way):
            before = task
            try:
                task = task.move(state, now=float(now))
            except NotAllowed as refused:
                assert "t1" in str(refused)
                assert task is before
            assert task.ended == (task.ended_at is not None)

    @given(task_states)
    def test_done_is_final(self, state: TaskState) -> None:
        """Nothing follows done."""
        with pytest.raises(NotAllowed):
            replace(TASK, state=TaskState.DONE).move(state, now=0.0)

    @given(task_states)
    def test_no_task_begins_twice(self, state: TaskState) -> None:
        """Open is where a task starts, never where it returns; and no state is its own next step."""
        task = replace(TASK, state=state)
        for to in (TaskState.OPEN, state):
            with pytest.raises(NotAllowed):
                task.move(to, now=0.0)


class TestChange:
    @pytest.mark.parametrize(
        "way",
        [
            "testing landed",
            "testing rejected queued testing landed",
            "held queued testing landed",
            "testing queued testing landed",
            "testing held closed",
            "rejected closed",
        ],
    )
    def test_the_ways_of_a_change(self, way: str) -> None:
        """Straight through, sent back, held for a person, tested again because main moved, given up."""
        change = CHANGE
        steps = way.split()
        for state in steps:
            change = change.move(ChangeState(state))

        assert change.state == steps[-1]

    @given(st.lists(change_states))
    def test_main_is_only_reached_from_a_test(self, way: list[ChangeState]) -> None:
        """A change that landed was being tested just before; a refused step changes nothing."""
        change = CHANGE
        for state in way:
            before = change
            try:
                change = change.move(state)
            except NotAllowed as refused:
                assert "c1" in str(refused)
                continue
            assert change.state is not ChangeState.LANDED or before.state is ChangeState.TESTING
            assert not before.ended

    @pytest.mark.parametrize("end", [ChangeState.LANDED, ChangeState.CLOSED])
    @given(state=change_states)
    def test_landed_and_closed_are_final(self, end: ChangeState, state: ChangeState) -> None:
        """Undoing a landing is another change."""
        with pytest.raises(NotAllowed):
            replace(CHANGE, state=end).move(state)

    def test_a_reason_to_hold_goes_when_it_is_queued_again(self) -> None:
        """What it waited for is no longer shown."""
        held = CHANGE.move(ChangeState.HELD, reason="no checks", hold=Hold.CHECKS)
        queued = held.move(ChangeState.QUEUED)

        assert (held.hold, held.reason) == (Hold.CHECKS, "no checks")
        assert (queued.hold, queued.reason) == (None, "")

    def test_a_change_with_all_its_parts_reads_back(self) -> None:
        """Results, candidate and receipt survive JSON."""
        change = replace(
            CHANGE,
            candidate=Candidate(commit="a", tree="b", before="c", commits=("d",), files=("e",)),
            checks=(CheckResult(command="make", tree="b", passed=False, exit_code=None, seconds=0.5, started_at=1.0),),
            landing=Landing(main="main", before="c", after="a", tree="b", commits=("d",), files=("e",), landed_at=2.0),
        )

        assert codec.revive(Change, codec.decode(codec.encode(change))) == change


class TestRun:
    def test_a_run_begins_and_ends(self) -> None:
        """An intent, a process, an outcome."""
        begun = RUN.begin(IDENTITY, base="abc", now=1.0)
        ended = begun.end(Outcome.DONE, now=2.0, evidence=("clean tree",), exit_code=0, result="Fixed.")

        assert (RUN.live, begun.live, ended.live) == (True, True, False)
        assert (begun.identity, begun.base, begun.started_at) == (IDENTITY, "abc", 1.0)
        assert (ended.outcome, ended.ended_at, ended.exit_code, ended.result) == (Outcome.DONE, 2.0, 0, "Fixed.")

    @given(st.sampled_from(Outcome), st.sampled_from(Outcome))
    def test_an_outcome_is_final(self, first: Outcome, second: Outcome) -> None:
        """A run that has ended neither ends nor begins again."""
        ended = RUN.end(first, now=1.0)

        with pytest.raises(NotAllowed, match="r1"):
            ended.end(second, now=2.0)
        with pytest.raises(NotAllowed, match="r1"):
            ended.begin(IDENTITY, base="", now=2.0)

    def test_what_it_said_before_is_kept_if_it_says_nothing_at_the_end(self) -> None:
        """The last words win, silence does not."""
        spoken = replace(RUN, result="Half done.")

        assert spoken.end(Outcome.CRASHED, now=1.0).result == "Half done."
        assert spoken.end(Outcome.DONE, now=1.0, result="Done.").result == "Done."

    def test_usage_adds_up(self) -> None:
        """Tokens and money of two readings."""
        assert Usage(1, 2, 0.5) + Usage(10, 20, 0.25) == Usage(11, 22, 0.75)

    @given(st.integers(0, 10**12), st.binary())
    def test_a_chunk_ends_where_the_next_begins(self, offset: int, content: bytes) -> None:
        """Offsets count bytes."""
        assert Chunk("r1", offset, 0.0, content).end == offset + len(content)


class TestDelivery:
    @given(st.lists(st.sampled_from(ORDER)))
    def test_a_receipt_never_goes_back(self, way: list[Receipt]) -> None:
        """Whatever is reported in whatever order, the furthest counts."""
        delivery = DELIVERY
        for step in way:
            delivery = delivery.move(step)

        assert delivery.receipt is max([Receipt.PENDING, *way], key=ORDER.index)

    @given(st.lists(receipts))
    def test_acked_is_final(self, way: list[Receipt]) -> None:
        """A message that was acknowledged can't fail any more."""
        delivery = replace(DELIVERY, receipt=Receipt.ACKED)
        for step in way:
            delivery = delivery.move(step)

        assert delivery.receipt is Receipt.ACKED

    def test_a_failed_delivery_can_be_tried_again(self) -> None:
        """Failed is where it stays until someone tries once more."""
        failed = DELIVERY.move(Receipt.DELIVERED, run="r1").move(Receipt.FAILED)

        assert (failed.receipt, failed.run) == (Receipt.FAILED, "r1")
        assert failed.move(Receipt.DELIVERED, run="r2").run == "r2"

    def test_the_run_that_carried_it_is_known(self) -> None:
        """Delivered again after a crash: the newer run counts."""
        first = DELIVERY.move(Receipt.DELIVERED, run="r1")

        assert first.move(Receipt.READ).run == "r1"
        assert first.move(Receipt.DELIVERED, run="r2").run == "r2"
