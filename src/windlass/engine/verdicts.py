"""What becomes of a change: each step one transaction that looks at the rows as they are now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from windlass.core import gate
from windlass.core.address import HUMAN, SYSTEM
from windlass.core.change import Candidate, Change, ChangeState, CheckResult, Hold, Landing
from windlass.core.document import Document
from windlass.core.message import Kind
from windlass.core.ports import Ports, Writing
from windlass.core.render import escalation
from windlass.core.settings import Limits
from windlass.core.task import Task, TaskState
from windlass.engine.bell import Bell
from windlass.engine.endings import end_task
from windlass.engine.talk import channel_of, channel_of_change, say, withdraw

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a change is sent back: in a word for lists, and in full for its author."""

    reason: str
    body: str


class Verdicts:
    """Writes down what the gate has found."""

    def __init__(self, ports: Ports, bell: Bell) -> None:
        self.store = ports.store
        self.clock = ports.clock
        self.bell = bell

    async def staged(self, change: Change, candidate: Candidate) -> bool:
        """It is about to be tested. False: it was given up since we looked."""

        def step(store: Writing, current: Change) -> bool:
            if current.state not in (ChangeState.QUEUED, ChangeState.TESTING):
                return False
            testing = current if current.state is ChangeState.TESTING else current.move(ChangeState.TESTING)
            store.record("change.staged", change.id, replace(testing, candidate=candidate, reason=""))
            return True

        return await self._write(change, step) or False

    async def tested(self, change: Change, result: CheckResult, output: str) -> None:
        """Keep the result, and the output as a document."""
        now = self.clock.now()

        def step(store: Writing, current: Change) -> None:
            kept = store.find(Document, f"{change.project}/{result.document}")
            text = (
                kept.revise(output, author=str(SYSTEM), now=now)
                if kept
                else Document(
                    project=change.project, name=result.document, body=output, author=str(SYSTEM), written_at=now
                )
            )
            store.record("change.tested", change.id, replace(current, checks=(result,)), text, passed=result.passed)

        await self._write(change, step)

    async def landed(self, change: Change, landing: Landing) -> None:
        """Main has moved: the receipt, and the task is done."""
        now = self.clock.now()

        def step(store: Writing, current: Change) -> None:
            landed = replace(_tested(current).move(ChangeState.LANDED), landing=landing, head=change.head)
            store.record("change.landed", change.id, landed, main=landing.main, after=landing.after)
            if current.head != change.head:
                _queue_rest(store, current, now)
            _finish_task(store, current, "", now)
            _tell(store, current, f"{change.id} landed on {landing.main}: {change.title}", now)

        await self._write(change, step, of_any=True)

    async def closed(self, change: Change, reason: str) -> None:
        """There is nothing left to land."""
        now = self.clock.now()

        def step(store: Writing, current: Change) -> None:
            store.record("change.closed", change.id, current.move(ChangeState.CLOSED, reason=reason))
            _finish_task(store, current, reason, now)

        await self._write(change, step)

    async def refused(self, change: Change, refusal: Refusal, limits: Limits) -> None:
        """Send it back to its author with the exact words, or to a person when that has not helped."""
        now = self.clock.now()

        def step(store: Writing, current: Change) -> None:
            if current.state is ChangeState.HELD:
                return  # by a person, since we looked
            task = store.find(Task, current.task)
            match gate.decide_refusal(current, limits, over=task is not None and task.ended):
                case gate.Return():
                    _return(store, current, refusal, now)
                case gate.Refuse():
                    closed = current.move(ChangeState.CLOSED, reason=refusal.reason)
                    store.record("change.closed", change.id, closed)
                    _tell(store, current, refusal.body, now)
                case gate.Escalate():
                    reason = f"{refusal.reason}; it went back {current.returns} time{'s' * (current.returns != 1)}"
                    held = current.move(ChangeState.HELD, reason=reason, hold=Hold.HUMAN)
                    _hold(store, held, f"{escalation(current, refusal.reason)}\n\n{refusal.body}", now)

        await self._write(change, step)

    async def held(self, change: Change, hold: Hold, reason: str, ask: str) -> None:
        """It waits, and a person is asked, if there is something to ask."""
        now = self.clock.now()

        def step(store: Writing, current: Change) -> None:
            if current.state is not ChangeState.HELD:  # by a person, since we looked
                _hold(store, current.move(ChangeState.HELD, reason=reason, hold=hold), ask, now)

        await self._write(change, step)

    async def again(self, change: Change, reason: str) -> None:
        """Put it back into the line, unless it was given up since we looked."""
        now = self.clock.now()

        def step(store: Writing, current: Change) -> None:
            if current.state is change.state:
                store.record("change.queued", change.id, current.move(ChangeState.QUEUED, reason=reason))
                withdraw(store, channel_of_change(current), "What held the change is gone.", now)

        await self._write(change, step)

    async def delayed(self, change: Change, reason: str) -> None:
        """Say on the change why nothing happens to it."""

        def step(store: Writing, current: Change) -> None:
            if current.reason != reason:
                store.record("change.delayed", change.id, replace(current, reason=reason))

        await self._write(change, step)

    async def _write(self, change: Change, step: Callable[[Writing, Change], T], *, of_any: bool = False) -> T | None:
        """One transaction on the change as it is now; nothing where it has ended, or has other commits than those that
        were judged, unless that counts for any."""

        def current(store: Writing) -> T | None:
            found = store.find(Change, change.id)
            if found is None or found.ended or (found.head != change.head and not of_any):
                return None
            return step(store, found)

        result = await self.store.write(current)
        self.bell.ring()
        return result


def _tested(change: Change) -> Change:
    """A change whose test is known, at the end of that test: it may have been held or queued again since."""
    queued = change.move(ChangeState.QUEUED) if change.state is ChangeState.HELD else change
    return queued.move(ChangeState.TESTING) if queued.state is ChangeState.QUEUED else queued


def _queue_rest(store: Writing, change: Change, now: float) -> None:
    """What its author brought while the commits before were landing is a change of its own."""
    rest = replace(
        change,
        id=store.next_id(Change),
        state=ChangeState.QUEUED,
        hold=None,
        reason="",
        candidate=None,
        checks=(),
        queued_at=now,
        turn=store.last_seq() + 1,
    )
    store.record("change.queued", rest.id, rest)


def _finish_task(store: Writing, change: Change, reason: str, now: float) -> None:
    task = store.find(Task, change.task)
    more = any(not each.ended for each in store.changes_of_task(change.task) if each.id != change.id)
    if task is not None and task.state is TaskState.LANDING and not more:
        end_task(store, task, TaskState.DONE, now=now, reason=reason)


def _return(store: Writing, change: Change, refusal: Refusal, now: float) -> None:
    rejected = replace(change.move(ChangeState.REJECTED, reason=refusal.reason), returns=change.returns + 1)
    task = store.find(Task, change.task)
    landing = task is not None and task.state is TaskState.LANDING  # or its author is at another repository's
    back = task.move(TaskState.ACTIVE, now=now, reason=refusal.reason) if task and landing else None
    store.record("change.rejected", change.id, rejected, *([back] if back else []), returns=rejected.returns)
    say(store, sender=str(SYSTEM), to=(change.agent,), body=refusal.body, channel=channel_of(change.task), now=now)


def _hold(store: Writing, held: Change, ask: str, now: float) -> None:
    store.record("change.held", held.id, held)
    if ask:
        _tell(store, held, ask, now, kind=Kind.ASK)


def _tell(store: Writing, change: Change, body: str, now: float, *, kind: Kind = Kind.REPORT) -> None:
    channel = channel_of_change(change)
    say(store, sender=str(SYSTEM), to=(str(HUMAN),), body=body, channel=channel, now=now, kind=kind)
