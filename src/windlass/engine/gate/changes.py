"""What people ask of changes: the receipt, taking a landed one back, and giving one up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import TypeVar

from windlass.core.errors import Conflict
from windlass.core.nouns.change import Change
from windlass.core.nouns.project import halt
from windlass.core.nouns.task import Task, TaskState
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading, Writing
from windlass.engine.background import Moves
from windlass.engine.projects.absences import Absences
from windlass.engine.projects.projects import Projects
from windlass.engine.records.changes import queue_change
from windlass.engine.records.closing import close_change, end_task, learned_in
from windlass.engine.records.documents import text_of
from windlass.engine.records.lookup import get
from windlass.engine.records.messages import current_task

T = TypeVar("T")


class Changes:
    """Finds changes, makes the one that undoes another, and takes one out of the line."""

    def __init__(self, ports: Ports, projects: Projects, moves: Moves, absences: Absences) -> None:
        self.store = ports.store
        self.git = ports.git
        self.clock = ports.clock
        self.projects = projects
        self.moves = moves
        self.absences = absences

    async def get(self, key: str) -> Change:
        """The change with that id. Raises NotFound."""
        hint = "Run `windlass queue --all` to see them."
        return await self.store.read(lambda store: get(store, Change, key, hint=hint))

    async def of_task(self, task: str) -> Change | None:
        """The newest change of a task, if it has one."""
        return await self.store.read(lambda store: store.change_of_task(task))

    async def undoing(self, key: str) -> Change | None:
        """The change that takes a landed one back, if there is one."""
        return await self.store.read(lambda store: store.undoing(key))

    async def notes(self, change: Change) -> tuple[str, str]:
        """What its last check printed, and what was learned from a change that never landed; empty where unknown."""
        names = (change.checks[-1].document if change.checks else "", learned_in(change))
        ids = [f"{change.project}/{name}" for name in names]
        output, learned = await self.store.read(lambda store: [text_of(store, key) for key in ids])
        return output, learned

    async def halted(self, change: Change) -> str:
        """Why nothing lands where a change wants to; nothing if something may, or it is over."""
        if change.ended:
            return ""
        project = await self.projects.get(change.project)
        return halt(project, (await self.absences.all()).get(project.id), self.clock.now())

    async def undo(self, key: str) -> Change:
        """Queue a change that takes a landed one back; it goes through the same gate."""
        change = await self.get(key)
        if change.landing is None:
            raise Conflict(f"{key} has not landed, so there is nothing to undo.", hint="See `windlass queue`.")
        project = await self.projects.get(change.project)
        title = f"Undo {change.id}: {change.title}"
        branch = f"undo/{change.id}"
        head = await self.git.revert(project, change.landing, branch, title)
        now = self.clock.now()

        def step(store: Writing) -> Change:
            if known := store.undoing(change.id):
                raise Conflict(
                    f"{known.id} already undoes {key}; it is {known.state}.", hint="See `windlass queue --all`."
                )
            made = Change(
                id="", project=change.project, branch=branch, head=head, title=title, undoes=change.id, queued_at=now
            )
            return queue_change(store, made)

        return await self.store.write(step)

    async def withdraw(self, agent: str, reason: str) -> bool:
        """Give up the change that an agent wants to land. False: it has none."""
        changes = await self.store.read(lambda store: _wanted(store, agent))
        if not changes:
            return False
        async with AsyncExitStack() as still:
            for project in sorted({change.project for change in changes}):
                await still.enter_async_context(self.moves[project])
            for change in changes:
                await self.must_not_have_landed(change)
            return await self.store.write(lambda store: _withdraw(store, agent, reason, self.clock.now()))

    async def give_up(self, tasks: Sequence[str], reason: str) -> None:
        """Let nothing land any more of what these tasks want to; what has landed has landed."""
        found = await self.store.read(lambda store: [store.changes_of_task(task) for task in tasks])
        for change in (change for changes in found for change in changes if not change.ended):
            with suppress(Conflict):  # it has landed, or is over
                await self.arrange(change.id, partial(_close, reason))

    async def arrange(self, key: str, step: Callable[[Writing, Change, float], T]) -> T:
        """One step of a change that has not landed, and can't land meanwhile."""
        change = await self.get(key)

        def current(store: Writing) -> T:
            found = store.find(Change, key) or change
            if found.ended:
                raise Conflict(f"{key} is {found.state}; nothing can be done to it any more.", hint=_after(found))
            return step(store, found, self.clock.now())

        async with self.moves[change.project]:
            await self.must_not_have_landed(change)
            return await self.store.write(current)

    async def must_not_have_landed(self, change: Change) -> None:
        """Main may have moved without our recording it, which the gate is about to do."""
        project = await self.projects.get(change.project)
        if change.candidate is not None and await self.git.landed(project, change.candidate.commit):
            raise Conflict(f"{change.id} has landed already.", hint=f"`windlass undo {change.id}` takes it back.")


def _after(change: Change) -> str:
    if change.landing is not None:
        return f"`windlass undo {change.id}` takes it back."
    return f"`windlass queue add {change.branch}` puts its branch into the queue again."


def _wanted(store: Reading, agent: str) -> list[Change]:
    task = current_task(store, agent)
    changes = store.changes_of_task(task.id) if task is not None and task.state is TaskState.LANDING else []
    return [change for change in changes if not change.ended]


def _close(reason: str, store: Writing, change: Change, now: float) -> None:
    close_change(store, change, reason, now)
    task = store.find(Task, change.task)
    if task is not None and not task.ended and all(each.ended for each in store.changes_of_task(task.id)):
        end_task(store, task, TaskState.CANCELLED, now=now, reason=reason)


def _withdraw(store: Writing, agent: str, reason: str, now: float) -> bool:
    task, changes = current_task(store, agent), _wanted(store, agent)
    if task is None or not changes:
        return False
    for change in changes:
        close_change(store, change, reason, now)
    end_task(store, task, TaskState.CANCELLED, now=now, reason=reason)
    return True
