"""Reviews: begin them, take comments, and tell the gate which comments keep a change from landing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from windlass.core.errors import Conflict, NotAllowed, NotFound, WindlassError
from windlass.core.gate import reviews
from windlass.core.nouns.agent import Agent, Permissions
from windlass.core.nouns.change import Change, ChangeState, Hold
from windlass.core.nouns.message import Kind, Message
from windlass.core.nouns.project import Project
from windlass.core.nouns.task import Task, TaskState
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading, Writing
from windlass.core.settings.schema import Reviewing
from windlass.engine.gate import comments
from windlass.engine.gate.changes import Changes
from windlass.engine.messages.talk import Talk
from windlass.engine.projects.tasks import Order, Tasks
from windlass.engine.records.closing import end_task
from windlass.engine.records.lookup import get
from windlass.engine.troubles import Troubles

REVIEWER = "reviewer"
"""The agent that reviews by default, if the repository defines one."""

_BUSY = (TaskState.OPEN, TaskState.ACTIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How a person wants a change reviewed."""

    agent: str = ""
    provider: str = ""
    options: Mapping[str, str] = field(default_factory=dict)


class Reviews:
    """Begins reviews, takes comments, and tells the gate about objections."""

    def __init__(self, ports: Ports, tasks: Tasks, changes: Changes, *, talk: Talk, troubles: Troubles) -> None:
        self.store = ports.store
        self.library = ports.library
        self.settings = ports.settings
        self.clock = ports.clock
        self.projects = tasks.projects
        self.tasks = tasks
        self.changes = changes
        self.talk = talk
        self.troubles = troubles

    async def objection(self, change: Change) -> str:
        """Why reviews keep a change from landing now, or nothing. Asked before staging, and right before main moves."""
        return await self.store.read(partial(self.objection_to, change))

    def objection_to(self, change: Change, store: Reading) -> str:
        """The same, within a read."""
        return _objection(store, change, wanted=self._is_wanted(store, change))

    async def tend(self, over: Iterable[Task], changes: Iterable[Change]) -> None:
        """End the reviews that are `over`, pass authors' answers on, and begin the reviews that settings want."""
        for task in over:
            await self.store.write(partial(_end, task.id, self.clock.now()))
        for change in changes:
            with self.troubles.noted("land"):
                if change.hold is Hold.REVIEW:
                    await self._pass_on(change)
                if change.queued or change.hold is Hold.REVIEW:
                    await self._see_to(change)

    async def _pass_on(self, change: Change) -> None:
        said = await self.said(change)
        if not any(reviews.brought_again(change, blocking, said) for blocking in reviews.open_blocking(said)):
            return
        most = self.settings.at((await self.projects.get(change.project)).path).limits.returns
        await self.store.write(lambda store: comments.pass_on(store, change.id, most, self.clock.now()))

    async def _see_to(self, change: Change) -> None:
        """Begin the review that the settings want, once for each commit."""
        begun = await self.store.read(lambda store: _begun(store, change) if self._is_wanted(store, change) else None)
        if begun is None:
            return
        problem = "its review did not come to an end."
        if not begun:
            try:
                await self._begin(change, Look())
                return
            except WindlassError as error:
                problem = f"its review can't begin: {error} {error.hint}".strip()
        await self.store.write(lambda store: comments.ask_about_review(store, change, problem, self.clock.now()))

    def _is_wanted(self, store: Reading, change: Change) -> bool:
        project = get(store, Project, change.project)
        return bool(change.agent) and self.settings.at(project.path).gate.review is Reviewing.AGENT

    async def start(self, key: str, look: Look) -> tuple[Task, Agent]:
        """Let an agent review a change: it works on a worktree of it, and may only read."""
        change = await self.changes.get(key)
        if change.ended:
            raise Conflict(f"{key} is {change.state}, so there is nothing to review.", hint="See `windlass queue`.")
        at_it = await self.store.read(lambda store: comments.reviewers_of(store, change))
        if at_it:
            name = at_it[0].agent
            raise Conflict(f"{name} reviews {key} already.", hint=f"See `windlass show {name}`.")
        return await self._begin(change, look)

    async def _begin(self, change: Change, look: Look) -> tuple[Task, Agent]:
        project = await self.projects.get(change.project)
        named = look.agent
        if not named and (await self.library.roster(project.path)).find(REVIEWER):
            named = REVIEWER
        if change.agent and named == change.agent.partition("@")[0]:
            raise NotAllowed(f"{named} wrote {change.id}, and can't review its own work.", hint="Name another agent.")
        said = await self.said(change)
        order = Order(
            path=project.path,
            title=f"Review {change.id}: {change.title}"[:200],
            brief=reviews.review_brief(change, project.main, said),
            agent=named,
            provider=look.provider,
            permissions=Permissions.READ,
            options=look.options,
            reviews=change.id,
        )
        task, agent = await self.tasks.add(order)
        await self.store.write(lambda store: comments.begin(store, change, agent.id, self.clock.now()))
        return task, agent

    async def comment(self, run: str, key: str, given: reviews.Comment, reply_to: str = "") -> Message:
        """Comment on a change: a person, a reviewer, or its author in reply. Raises NotAllowed. `run`: the caller's."""
        who = await self._who(run, key)

        def step(store: Writing, change: Change, now: float) -> Message:
            reviewing = any(each.agent == who for each in comments.reviewers_of(store, change))
            reviews.check_comment(who, change, reviews=reviewing, blocking=given.blocking)
            if reply_to:
                _find(comments.said_about(store, key), reply_to, key)
            return comments.comment(store, who, change, given, now=now, reply_to=reply_to)

        return await self.changes.arrange(key, step)

    async def resolve(self, run: str, key: str, comment: str, words: str = "") -> Message:
        """Settle a blocking comment: who made it, or a person. Returns it. Raises NotAllowed, NotFound, Conflict."""
        who = await self._who(run, key)

        def step(store: Writing, change: Change, now: float) -> Message:
            said = comments.said_about(store, key)
            found = _find(said, comment, key)
            reviews.check_settling(who, change, found)
            if found not in reviews.open_blocking(said):
                raise Conflict(f"{comment} does not block {key}.", hint=f"See `windlass change show {key}`.")
            comments.settle(store, who, change, found, words=words, now=now)
            return found

        return await self.changes.arrange(key, step)

    async def said(self, change: Change) -> list[Message]:
        """All that was said about a change, in order."""
        return await self.store.read(lambda store: comments.said_about(store, change.id))

    async def _who(self, run: str, key: str) -> str:
        """The agent whose run calls, or a person. Reads its chat file first, so that messages keep their order."""
        speaker = await self.talk.speaker(run)
        await self.talk.catch_up(speaker, await self.projects.get((await self.changes.get(key)).project))
        return speaker.address


def _find(said: list[Message], comment: str, change: str) -> Message:
    found = next((each for each in said if each.id == comment and each.kind is Kind.COMMENT), None)
    if found is None:
        raise NotFound(f"{change} has no comment {comment}.", hint=f"See `windlass change show {change}`.")
    return found


def _objection(store: Reading, change: Change, *, wanted: bool) -> str:
    current = store.find(Change, change.id) or change
    # A comment that blocks an earlier unfinished change of the same branch blocks this one, too.
    found = store.changes_of_task(change.task) if change.task else []
    others = [other for other in found if other.project == change.project and not other.ended and other.id != change.id]
    said = [message for about in (change, *others) for message in comments.said_about(store, about.id)]
    busy = [each.agent for each in comments.reviewers_of(store, change, *_BUSY)]
    return reviews.objection(current, said, wanted=wanted, reviewers=busy)


def settled(store: Reading) -> list[Task]:
    """Waiting reviews whose change has ended, or whose comments are settled."""
    waiting = [task for task in store.unfinished_tasks() if task.reviews and task.state is TaskState.WAITING]
    return [task for task in waiting if _is_over(store, task)]


def _is_over(store: Reading, task: Task) -> bool:
    change = store.find(Change, task.reviews)
    open_ones = reviews.open_blocking(comments.said_about(store, task.reviews))
    return change is None or change.ended or all(one.sender != task.agent for one in open_ones)


def _end(key: str, now: float, store: Writing) -> None:
    task = store.find(Task, key)
    if task is not None and task.state is TaskState.WAITING and _is_over(store, task):
        end_task(store, task, TaskState.DONE, now=now, reason="all that it said is settled")


def _begun(store: Reading, change: Change) -> bool | None:
    """Whether this commit's review was begun and ended without an opinion; None if no review is needed now."""
    said = comments.said_about(store, change.id)
    done = reviews.is_reviewed(change, said) or reviews.open_blocking(said)
    if done or comments.reviewers_of(store, change) or change.state is ChangeState.TESTING:
        return None
    about = [each for each in said if each.remark and each.remark.head == change.head]
    return any(each.kind is Kind.SAY for each in about)
