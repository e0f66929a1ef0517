"""Record the steps of a change: each one transaction on the rows as they are now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from windlass.core.gate import rules
from windlass.core.nouns.change import Candidate, Change, ChangeState, CheckResult, Hold, Landing
from windlass.core.nouns.task import Task, TaskState
from windlass.core.ports import Ports
from windlass.core.ports.store import Writing
from windlass.core.render import escalation
from windlass.core.settings.schema import Limits
from windlass.engine.records.changes import queue_change
from windlass.engine.records.closing import close_change, end_task
from windlass.engine.records.documents import revised
from windlass.engine.records.messages import ask_about, channel_of_change, tell_agent, tell_person, withdraw_hold

IN_QUEUE = (ChangeState.QUEUED, ChangeState.TESTING)
MOST_RESULTS = 16
"""How many results of its tests a change keeps."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a change is sent back: in few words for lists, and in full for its author."""

    reason: str
    body: str
    by_checks: bool = False
    """Its checks failed; otherwise it could not be staged on main."""
    unfit: bool = False
    """It could not be staged on any main."""


class GateRecord:
    """Writes the gate's findings into the store."""

    def __init__(self, ports: Ports) -> None:
        self.store = ports.store
        self.clock = ports.clock

    async def staged(self, stack: Sequence[tuple[Change, Candidate]]) -> bool:
        """These changes are about to be tested together. Returns False if one was given up."""
        return await self._all(stack, lambda current, candidate: replace(current, candidate=candidate, reason=""))

    async def chosen(self, stack: Sequence[tuple[Change, Candidate]], proof: CheckResult) -> bool:
        """Main is about to move to the last of these, whose tree passed. Returns False if one was given up."""

        def intended(current: Change, candidate: Candidate) -> Change:
            others = tuple(check for check in current.checks if check != proof)
            return replace(current, candidate=candidate, checks=(*others, proof)[-MOST_RESULTS:])

        return await self._all(stack, intended)

    async def _all(
        self, stack: Sequence[tuple[Change, Candidate]], made: Callable[[Change, Candidate], Change]
    ) -> bool:
        """Alter changes in one transaction, if all of them are still in the queue. Returns whether they are."""

        def step(store: Writing) -> bool:
            rows = [row for change, _ in stack if (row := _in_queue(store, change))]
            if len(rows) < len(stack):
                return False
            for row, (_, candidate) in zip(rows, stack, strict=True):
                testing = row if row.state is ChangeState.TESTING else row.move(ChangeState.TESTING)
                if (then := made(testing, candidate)) != row:
                    store.record("change.staged", row.id, then)
            return True

        return await self.store.write(step)

    async def tested(self, change: Change, result: CheckResult, output: str) -> None:
        """Record a check's result, and its output as a document."""

        def step(store: Writing, current: Change, now: float) -> None:
            text = revised(store, change.project, result.document, output, now=now)
            results = (*current.checks, result)[-MOST_RESULTS:]
            store.record("change.tested", change.id, replace(current, checks=results), text, passed=result.passed)

        await self._write(change, step)

    async def landed(self, stack: Sequence[tuple[Change, Landing]]) -> None:
        """Record the receipts of changes that have landed, and end their tasks."""
        now = self.clock.now()

        def step(store: Writing) -> None:
            for change, landing in stack:
                current = store.find(Change, change.id)
                if current is not None and not current.ended:
                    _land(store, current, change.head, landing, now)

        await self.store.write(step)

    async def closed(self, change: Change, reason: str) -> None:
        """Close a change that has nothing left to land."""

        def step(store: Writing, current: Change, now: float) -> None:
            close_change(store, current, reason, now)
            _finish_task(store, current, reason, now)

        await self._write(change, step)

    async def refused(self, change: Change, refusal: Refusal, limits: Limits) -> None:
        """Send a change back to its author with the exact words, or to a person when that has not helped."""

        def step(store: Writing, current: Change, now: float) -> None:
            if current.state not in IN_QUEUE or _superseded(store, current, now):
                return
            current = replace(current, failures=current.failures + refusal.by_checks)
            task = store.find(Task, current.task)
            over = task is not None and task.ended
            match rules.decide_refusal(current, limits, over=over, unfit=refusal.unfit):
                case rules.AfterRefusal.RETURN:
                    _return(store, current, refusal, now)
                case rules.AfterRefusal.CLOSE:
                    close_change(store, current, refusal.reason, now)
                    _tell(store, current, refusal.body, now)
                case rules.AfterRefusal.ESCALATE:
                    reason = f"{refusal.reason}; it went back {current.returns} time{'s' * (current.returns != 1)}"
                    held = current.move(ChangeState.HELD, reason=reason, hold=Hold.HUMAN)
                    _hold(store, held, f"{escalation(current, refusal.reason)}\n\n{refusal.body}", now)

        await self._write(change, step)

    async def held(self, change: Change, hold: Hold, reason: str, ask: str) -> None:
        """Hold a change, and ask a person, if there is a question."""

        def step(store: Writing, current: Change, now: float) -> None:
            if current.state in IN_QUEUE and not _superseded(store, current, now):
                _hold(store, current.move(ChangeState.HELD, reason=reason, hold=hold), ask, now)

        await self._write(change, step)

    async def again(self, change: Change, reason: str) -> None:
        """Put a change back into the queue, unless its state has changed meanwhile."""

        def step(store: Writing, current: Change, now: float) -> None:
            if current.state is change.state:
                store.record("change.queued", change.id, current.move(ChangeState.QUEUED, reason=reason))
                withdraw_hold(store, current, "What held the change is gone.", now)

        await self._write(change, step)

    async def delayed(self, change: Change, reason: str) -> None:
        """Record on a change why it waits."""

        def step(store: Writing, current: Change, _: float) -> None:
            if current.reason != reason:
                store.record("change.delayed", change.id, replace(current, reason=reason))

        await self._write(change, step)

    async def _write(self, change: Change, step: Callable[[Writing, Change, float], None]) -> None:
        """One transaction on a change as it is now; none if it has ended, or has other commits now."""
        now = self.clock.now()

        def current(store: Writing) -> None:
            found = store.find(Change, change.id)
            if found is not None and not found.ended and found.head == change.head:
                step(store, found, now)

        await self.store.write(current)


def _superseded(store: Writing, change: Change, now: float) -> bool:
    """Close a change whose author has brought a later one since. Returns whether there is one."""
    others = store.changes_of_task(change.task) if change.task else []
    later = [other for other in others if other.project == change.project and other.turn > change.turn]
    if later:
        reason = f"{later[-1].id} has taken its place"
        store.record("change.closed", change.id, change.move(ChangeState.CLOSED, reason=reason))
        landed = any(other.landing for other in later)
        _finish_task(store, change, reason, now, state=TaskState.DONE if landed else TaskState.CANCELLED)
    return bool(later)


def _in_queue(store: Writing, change: Change) -> Change | None:
    """A change as it is now, if it is still in the queue with the same commits."""
    found = store.find(Change, change.id)
    return found if found and found.state in IN_QUEUE and found.head == change.head else None


def _land(store: Writing, change: Change, head: str, landing: Landing, now: float) -> None:
    testing = change.move(ChangeState.QUEUED) if change.state is ChangeState.HELD else change
    if testing.state is ChangeState.QUEUED:  # queued again or held since its test
        testing = testing.move(ChangeState.TESTING)
    landed = replace(testing.move(ChangeState.LANDED), landing=landing, head=head)
    store.record("change.landed", change.id, landed, main=landing.main, after=landing.after)
    if change.head != head:  # commits that the author brought during the landing are a change of their own
        blank = replace(change, id="", state=ChangeState.QUEUED, hold=None, reason="", candidate=None, checks=())
        queue_change(store, replace(blank, queued_at=now))
    _finish_task(store, change, "", now)
    _tell(store, change, f"{change.id} landed on {landing.main}: {change.title}", now)


def _finish_task(store: Writing, change: Change, reason: str, now: float, *, state: TaskState = TaskState.DONE) -> None:
    task = store.find(Task, change.task)
    more = any(not each.ended for each in store.changes_of_task(change.task) if each.id != change.id)
    if task is not None and task.state is TaskState.LANDING and not more:
        end_task(store, task, state, now=now, reason=reason)


def _return(store: Writing, change: Change, refusal: Refusal, now: float) -> None:
    rejected = replace(change.move(ChangeState.REJECTED, reason=refusal.reason), returns=change.returns + 1)
    task = store.find(Task, change.task)
    landing = task is not None and task.state is TaskState.LANDING  # or its author is at another repository's
    back = task.move(TaskState.ACTIVE, now=now, reason=refusal.reason) if task and landing else None
    store.record("change.rejected", change.id, rejected, *([back] if back else []), returns=rejected.returns)
    tell_agent(store, change.agent, refusal.body, task=change.task, now=now)


def _hold(store: Writing, held: Change, ask: str, now: float) -> None:
    store.record("change.held", held.id, held)
    if ask:
        ask_about(store, held, ask, now)


def _tell(store: Writing, change: Change, body: str, now: float) -> None:
    tell_person(store, body, channel=channel_of_change(change), now=now)
