"""The queue, as people arrange it: add, hold, release, drop and rank changes, pause and resume."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from windlass.core.address import HUMAN
from windlass.core.errors import Conflict
from windlass.core.gate import reviews
from windlass.core.gate.rules import place_in_queue
from windlass.core.nouns.change import BY_HAND, Change, ChangeState, Hold
from windlass.core.nouns.project import Absence, Project
from windlass.core.nouns.task import Task, TaskState
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading, Writing
from windlass.engine.background import Moves
from windlass.engine.gate.changes import Changes
from windlass.engine.gate.comments import approve, said_about
from windlass.engine.projects.projects import Projects
from windlass.engine.records.changes import queue_change
from windlass.engine.records.closing import close_change, end_task
from windlass.engine.records.messages import ask_about, review_channel, withdraw, withdraw_hold

LONGEST_TITLE = 200
MOST_ENDED = 1000
"""How many landed and closed changes are listed after the queue."""


class Queue:
    """Carries out what a person wants of the queue. Agents are not asked."""

    def __init__(self, ports: Ports, projects: Projects, changes: Changes, moves: Moves) -> None:
        self.ports = ports
        self.store = ports.store
        self.projects = projects
        self.changes = changes
        self.moves = moves

    async def absent(self) -> dict[str, Absence]:
        """The projects that can't be worked on, by id."""
        return await self.changes.absences.all()

    async def every(self, project: str = "", *, ended: bool = False) -> tuple[list[Project], list[Change]]:
        """The projects, all or one, and their changes in the order of the queue; with `ended`, those after them."""

        def question(store: Reading) -> tuple[list[Project], list[Change]]:
            projects = [found for found in store.projects() if project in ("", found.id)]
            known = {found.id for found in projects}
            changes = sorted(store.changes(project=project), key=place_in_queue)
            changes += store.changes(project=project, ended=True, limit=MOST_ENDED) if ended else []
            return projects, [change for change in changes if change.project in known]

        return await self.store.read(question)

    async def add(self, path: str, branch: str, title: str = "") -> Change:
        """Queue a person's own branch as it is now, or its new commits. Raises Conflict if it is queued like that."""
        project = await self.projects.at(path)
        self.ports.settings.check(project.path)
        head, subject = await self.ports.git.take(project, branch)
        words = " ".join((title or subject or branch).split())[:LONGEST_TITLE]
        wanted = Change(
            id="", project=project.id, branch=branch, head=head, title=words, queued_at=self.ports.clock.now()
        )
        async with self.moves[project.id]:  # the commits of a change that lands are not replaced
            if known := await self.store.read(partial(_of_branch, wanted)):
                await self.changes.must_not_have_landed(known)
            return await self.store.write(partial(_enter, wanted))

    async def drop(self, key: str, reason: str) -> Change:
        """Close a change, and cancel its task. Raises NotFound, or Conflict if it has ended or its agent is at work."""
        return await self.changes.arrange(key, partial(_drop, reason or "dropped by hand"))

    async def hold(self, key: str, reason: str) -> Change:
        """Let a change wait until a person releases it."""
        return await self.changes.arrange(key, partial(_hold, f"{BY_HAND}: {reason}" if reason else BY_HAND))

    async def release(self, key: str) -> Change:
        """Let a held change go on."""
        return await self.changes.arrange(key, _release)

    async def retry(self, key: str) -> Change:
        """Test a refused or held change again, as it is."""
        return await self.changes.arrange(key, _retry)

    async def first(self, key: str) -> Change:
        """Let a change go before all others of its project."""
        return await self.changes.arrange(key, _first)

    async def pause(self, path: str, reason: str) -> Project:
        """Let nothing land in a project until it is resumed."""
        project = await self.projects.at(path)
        async with self.moves[project.id]:  # when this returns, main does not move any more
            return await self._write_pause(project, self.ports.clock.now(), reason)

    async def resume(self, path: str) -> Project:
        """Let changes land again."""
        return await self._write_pause(await self.projects.at(path), None, "")

    async def _write_pause(self, project: Project, since: float | None, reason: str) -> Project:
        def step(store: Writing) -> Project:
            current = store.find(Project, project.id) or project
            if (current.paused_at is None) == (since is None):
                state = "not paused" if since is None else "paused already"
                raise Conflict(f"The queue of {project.name} is {state}.", hint="See `windlass queue`.")
            paused = replace(current, paused_at=since, pause=reason)
            store.record("project.resumed" if since is None else "project.paused", project.id, paused)
            return paused

        return await self.store.write(step)


def _of_branch(wanted: Change, store: Reading) -> Change | None:
    """The change of a branch that has not ended."""
    waiting = (change for change in store.changes(project=wanted.project) if change.branch == wanted.branch)
    return next(waiting, None)


def _enter(wanted: Change, store: Writing) -> Change:
    """Queue a branch. It has one change at a time: new commits take the place of those that wait."""
    known = _of_branch(wanted, store)
    if known is None:
        return queue_change(store, wanted)
    if known.agent or known.state is ChangeState.TESTING or (known.queued and known.head == wanted.head):
        whose = f" for {known.agent}" if known.agent else ""
        raise Conflict(
            f"{known.id} already wants to land {known.branch}{whose}; it is {known.state}.",
            hint="See `windlass queue`.",
        )
    back = known if known.queued else known.move(ChangeState.QUEUED)
    return _queue(store, replace(back, head=wanted.head, title=wanted.title, queued_at=wanted.queued_at))


def _queue(store: Writing, change: Change) -> Change:
    """Put a change at the end of the queue, to be staged anew."""
    return queue_change(store, replace(change, candidate=None, checks=()))


def _drop(reason: str, store: Writing, change: Change, now: float) -> Change:
    task = store.find(Task, change.task)
    if task is not None and not task.ended and task.state is not TaskState.LANDING:
        raise Conflict(
            f"{change.agent} is at work on {change.id}, and would only bring it again.",
            hint=f"`windlass stop {change.agent}` ends both.",
        )
    closed = close_change(store, change, reason, now)
    withdraw_hold(store, change, f"{change.id} was dropped.", now)
    more = any(not each.ended for each in store.changes_of_task(change.task))
    if task is not None and not task.ended and not more:
        end_task(store, task, TaskState.CANCELLED, now=now, reason=reason)
    return closed


def _hold(reason: str, store: Writing, change: Change, now: float) -> Change:
    if change.state not in (ChangeState.QUEUED, ChangeState.TESTING):
        raise Conflict(
            f"{change.id} is {change.state}, so it does not land by itself now.", hint=f"See {_shown(change)}."
        )
    held = change.move(ChangeState.HELD, reason=reason, hold=Hold.HUMAN)
    store.record("change.held", change.id, held)
    ask = f"{change.id} ({change.title}) is {reason}. `windlass queue release {change.id}` lets it go on."
    ask_about(store, held, ask, now)
    return held


def _release(store: Writing, change: Change, now: float) -> Change:
    if change.state is not ChangeState.HELD:
        raise Conflict(f"{change.id} is not held; it is {change.state}.", hint=f"See {_shown(change)}.")
    blocking = reviews.open_blocking(said_about(store, change.id)) if change.hold is Hold.REVIEW else []
    if blocking:
        raise Conflict(
            f"{blocking[0].id} by {blocking[0].sender} blocks {change.id}.",
            hint=f"`windlass change resolve {change.id} {blocking[0].id}` accepts it.",
        )
    if change.hold is Hold.REVIEW:  # who releases it has looked
        approve(store, str(HUMAN), change, "Released by hand.", now)
        withdraw(store, review_channel(change.id), f"{change.id} was released.", now)
    allowed = change.head if change.hold is Hold.GUARD else change.allowed
    queued = replace(change.move(ChangeState.QUEUED, reason="released by hand"), allowed=allowed)
    store.record("change.queued", change.id, queued)
    withdraw_hold(store, change, f"{change.id} was released.", now)
    return queued


def _retry(store: Writing, change: Change, now: float) -> Change:
    if change.state in (ChangeState.QUEUED, ChangeState.TESTING):
        raise Conflict(f"{change.id} is {change.state}, so it is about to be tried.", hint="See `windlass queue`.")
    queued = _queue(store, change.move(ChangeState.QUEUED, reason="tried again by hand"))
    withdraw_hold(store, change, f"{change.id} is tried again.", now)
    return queued


def _first(store: Writing, change: Change, now: float) -> Change:
    del now
    others = [other.rank for other in store.changes(project=change.project) if other.id != change.id]
    ranked = replace(change, rank=max([0, *others]) + 1)
    store.record("change.ranked", change.id, ranked)
    return ranked


def _shown(change: Change) -> str:
    return f"`windlass show {change.agent}`" if change.agent else "`windlass queue`"
