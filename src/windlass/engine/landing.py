"""The land tick: one change at a time is staged, tested on the very tree main will have, and landed."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from windlass.core import gate
from windlass.core.address import HUMAN, SYSTEM
from windlass.core.change import Candidate, Change, ChangeState, CheckResult, Hold, Landing
from windlass.core.document import Document
from windlass.core.errors import Conflict, NotAllowed, NotFound, Unavailable
from windlass.core.message import Kind
from windlass.core.ports import Ports, Writing
from windlass.core.project import Project
from windlass.core.render import conflict_note, escalation, rejection
from windlass.core.settings import CheckSettings, Limits, Settings
from windlass.core.task import Task, TaskState
from windlass.engine.bell import Bell
from windlass.engine.lanes import Lanes
from windlass.engine.talk import channel_of, say, withdraw

CHECKOUT_RETRY_SECONDS = 10.0
"""How often a change that a checkout stood in the way of is tried again."""


class Gate:
    """Moves main, one lane per project. Every step can be repeated after a crash."""

    def __init__(self, ports: Ports, bell: Bell, lanes: Lanes) -> None:
        self.store = ports.store
        self.git = ports.git
        self.checks = ports.checks
        self.settings = ports.settings
        self.clock = ports.clock
        self.bell = bell
        self.lanes = lanes
        self._retried_at: dict[str, float] = {}

    async def tick(self) -> bool:
        """Begin a lane for each project that has changes waiting."""
        queue = await self.store.read(lambda store: store.changes())
        for project in dict.fromkeys(each.project for each in queue):
            self.lanes.begin(project, partial(self.advance, project))
        return False

    async def advance(self, project_id: str) -> None:
        """Take one project's queue as far as it goes."""
        project = await self._project(project_id)
        await self._release(project)
        while change := gate.next_change(await self._queue(project)):
            settings = self.settings.at(project.path)
            if not settings.checks.command:
                await self._hold_for_checks(project, change)
                continue
            await self._try(project, change, settings)

    async def _try(self, project: Project, change: Change, settings: Settings) -> None:
        """Stage, test and land. Only the change's own faults reject it."""
        try:
            if await self._landed_before(project, change):
                return
            candidate = await self.git.stage(project, change.head, _message(change))
            if not candidate.commits:
                await self._close(change, "main has all of it already")
                return
            if not await self._stage(change, candidate):
                return
            change = _to_testing(change, candidate)
            result, output = await self._test(project, change, candidate, settings.checks)
            if not result.passed:
                await self._refuse(change, rejection(change, result, output), result.reason, settings.limits)
                return
            await self._land(project, change, candidate)
        except Conflict as error:
            await self._refuse(
                change, conflict_note(change, project.main, str(error)), "conflicts with main", settings.limits
            )

    async def _stage(self, change: Change, candidate: Candidate) -> bool:
        """Record what is to be tested. False: it was given up since we looked."""

        def step(store: Writing) -> bool:
            current = store.find(Change, change.id)
            if current is None or current.state is not change.state:
                return False
            store.record("change.staged", change.id, _to_testing(current, candidate))
            return True

        staged = await self.store.write(step)
        self.bell.ring()
        return staged

    async def _landed_before(self, project: Project, change: Change) -> bool:
        """After a crash between moving main and recording it: record it."""
        candidate = change.candidate
        if change.state is not ChangeState.TESTING or candidate is None:
            return False
        if not await self.git.landed(project, candidate.commit):
            return False
        await self._record_landing(change, await self.git.land(project, candidate))
        return True

    async def _test(
        self, project: Project, change: Change, candidate: Candidate, checks: CheckSettings
    ) -> tuple[CheckResult, str]:
        """The verdict on the candidate's tree, asked for once."""
        known = gate.known_result(change, candidate.tree, checks)
        if known is not None:
            return known, ""
        result, output = await self.checks.run(project, candidate, checks, self.clock.now())
        document = f"checks/{change.id}"
        result = replace(result, document=document)
        now = self.clock.now()

        def step(store: Writing) -> None:
            current = store.find(Change, change.id)
            if current is None:
                return
            kept = store.find(Document, f"{project.id}/{document}")
            text = (
                kept.revise(output, author=str(SYSTEM), now=now)
                if kept
                else Document(project=project.id, name=document, body=output, author=str(SYSTEM), written_at=now)
            )
            store.record("change.tested", change.id, replace(current, checks=(result,)), text, passed=result.passed)

        await self.store.write(step)
        self.bell.ring()
        return result, output

    async def _land(self, project: Project, change: Change, candidate: Candidate) -> None:
        try:
            landing = await self.git.land(project, candidate)
        except Conflict as error:
            await self._again(change, str(error))
        except (NotAllowed, Unavailable) as error:
            await self._hold(change, Hold.CHECKOUT, str(error))
        else:
            await self._record_landing(change, landing)

    async def _record_landing(self, change: Change, landing: Landing) -> None:
        now = self.clock.now()

        def step(store: Writing) -> None:
            current = store.find(Change, change.id)
            if current is None or current.ended:
                return
            landed = replace(current.move(ChangeState.LANDED), landing=landing)
            task = store.find(Task, change.task)
            rows = [task.move(TaskState.DONE, now=now)] if task and task.state is TaskState.LANDING else []
            store.record("change.landed", change.id, landed, *rows, main=landing.main, after=landing.after)
            _tell_human(store, change, f"{change.id} landed on {landing.main}: {change.title}", now)

        await self.store.write(step)
        self.bell.ring()

    async def _refuse(self, change: Change, body: str, reason: str, limits: Limits) -> None:
        """Send it back to its author with the exact words, or to a person when that has not helped."""
        now = self.clock.now()

        def step(store: Writing) -> None:
            current = store.find(Change, change.id)
            if current is None or current.ended:
                return
            match gate.decide_refusal(current, limits):
                case gate.Return():
                    _return(store, current, body, reason, now)
                case gate.Refuse():
                    store.record("change.rejected", change.id, current.move(ChangeState.REJECTED, reason=reason))
                    _tell_human(store, current, body, now)
                case gate.Escalate():
                    held = current.move(
                        ChangeState.HELD, reason=f"{reason}; returned {current.returns} times", hold=Hold.HUMAN
                    )
                    store.record("change.held", change.id, held)
                    _tell_human(store, current, f"{escalation(current, reason)}\n\n{body}", now, kind=Kind.ASK)

        await self.store.write(step)
        self.bell.ring()

    async def _again(self, change: Change, reason: str) -> None:
        """Put it back into the line, unless it was given up since we looked."""

        def step(store: Writing) -> None:
            current = store.find(Change, change.id)
            if current is not None and current.state is change.state:
                store.record("change.queued", change.id, current.move(ChangeState.QUEUED, reason=reason))

        await self.store.write(step)
        self.bell.ring()

    async def _close(self, change: Change, reason: str) -> None:
        now = self.clock.now()

        def step(store: Writing) -> None:
            closed = change.move(ChangeState.CLOSED, reason=reason)
            task = store.find(Task, change.task)
            rows = (
                [task.move(TaskState.DONE, now=now, reason=reason)] if task and task.state is TaskState.LANDING else []
            )
            store.record("change.closed", change.id, closed, *rows)

        await self.store.write(step)
        self.bell.ring()

    async def _hold_for_checks(self, project: Project, change: Change) -> None:
        """Nothing lands untested: keep it, and ask the person how to test."""
        reason = "the project has no check command"
        body = (
            f"{change.id} ({change.title}) waits: {project.name} has no check command, and nothing lands untested. "
            'Set one with `windlass config set checks.command "…"`.'
        )
        await self._hold(change, Hold.CHECKS, reason, ask=body)

    async def _hold(self, change: Change, hold: Hold, reason: str, *, ask: str = "") -> None:
        now = self.clock.now()

        def step(store: Writing) -> None:
            current = store.find(Change, change.id)
            if current is None or current.ended:
                return
            store.record("change.held", change.id, current.move(ChangeState.HELD, reason=reason, hold=hold))
            if ask:
                _tell_human(store, current, ask, now, kind=Kind.ASK)

        await self.store.write(step)
        self._retried_at[change.project] = self.clock.monotonic()
        self.bell.ring()

    async def _release(self, project: Project) -> None:
        """Queue held changes again when what held them may be gone."""
        now = self.clock.monotonic()
        due = now - self._retried_at.get(project.id, -CHECKOUT_RETRY_SECONDS) >= CHECKOUT_RETRY_SECONDS
        queue = await self._queue(project)
        for change in gate.to_release(queue, self.settings.at(project.path).checks, retry_checkout=due):
            await self.store.write(partial(_queue_again, change.id, self.clock.now()))

    async def _queue(self, project: Project) -> list[Change]:
        queue = await self.store.read(lambda store: store.changes())
        return [each for each in queue if each.project == project.id]

    async def _project(self, key: str) -> Project:
        project = await self.store.read(lambda store: store.find(Project, key))
        if project is None:
            raise NotFound(f"There is no project {key}.")
        return project


def _queue_again(key: str, now: float, store: Writing) -> None:
    change = store.find(Change, key)
    if change is not None and change.state is ChangeState.HELD:
        store.record("change.queued", key, change.move(ChangeState.QUEUED, reason=change.reason))
        withdraw(store, channel_of(change.task), "What held the change is gone.", now)


def _to_testing(change: Change, candidate: Candidate) -> Change:
    testing = change if change.state is ChangeState.TESTING else change.move(ChangeState.TESTING)
    return replace(testing, candidate=candidate, reason="")


def _return(store: Writing, change: Change, body: str, reason: str, now: float) -> None:
    rejected = replace(change.move(ChangeState.REJECTED, reason=reason), returns=change.returns + 1)
    task = store.find(Task, change.task)
    rows = [task.move(TaskState.ACTIVE, now=now, reason=reason)] if task and task.state is TaskState.LANDING else []
    store.record("change.rejected", change.id, rejected, *rows, returns=rejected.returns)
    say(store, sender=str(SYSTEM), to=(change.agent,), body=body, channel=channel_of(change.task), now=now)


def _tell_human(store: Writing, change: Change, body: str, now: float, *, kind: Kind = Kind.REPORT) -> None:
    say(store, sender=str(SYSTEM), to=(str(HUMAN),), body=body, channel=channel_of(change.task), now=now, kind=kind)


def _message(change: Change) -> str:
    """The message of the merge commit: what, by whom, and where to look it up."""
    lines = [f"Land {change.id}: {change.title}", "", f"Change: {change.id}"]
    if change.agent:
        lines.append(f"Agent: {change.agent}")
    if change.task:
        lines.append(f"Task: {change.task}")
    if change.undoes:
        lines.append(f"Undoes: {change.undoes}")
    return "\n".join(lines) + "\n"
