"""What people ask of changes: the receipt, taking a landed one back, and giving one up."""

from __future__ import annotations

from windlass.core.change import Change, ChangeState
from windlass.core.errors import Conflict, NotFound
from windlass.core.ports import Ports, Reading, Writing
from windlass.core.project import Project
from windlass.core.task import TaskState
from windlass.engine.bell import Bell
from windlass.engine.talk import channel_of, withdraw


class Changes:
    """Finds changes, makes the one that undoes another, and takes one out of the line."""

    def __init__(self, ports: Ports, bell: Bell) -> None:
        self.store = ports.store
        self.git = ports.git
        self.clock = ports.clock
        self.bell = bell

    async def get(self, key: str) -> Change:
        change = await self.store.read(lambda store: store.find(Change, key))
        if change is None:
            raise NotFound(f"There is no change {key}.", hint="Run `windlass queue --all` to see them.")
        return change

    async def undo(self, key: str) -> Change:
        """Queue a change that takes a landed one back; it goes through the same gate."""
        change = await self.get(key)
        if change.landing is None:
            raise Conflict(f"{key} has not landed, so there is nothing to undo.", hint="See `windlass queue`.")
        project = await self._project(change.project)
        known = await self.store.read(lambda store: _undoing(store, change.id))
        if known is not None:
            raise Conflict(f"{known.id} already undoes {key}; it is {known.state}.", hint="See `windlass queue --all`.")
        title = f"Undo {change.id}: {change.title}"
        branch = f"undo/{change.id}"
        head = await self.git.revert(project, change.landing, branch, title)
        now = self.clock.now()

        def step(store: Writing) -> Change:
            made = Change(
                id=store.next_id(Change),
                project=change.project,
                branch=branch,
                head=head,
                title=title,
                undoes=change.id,
                queued_at=now,
            )
            store.record("change.queued", made.id, made)
            return made

        made = await self.store.write(step)
        self.bell.ring()
        return made

    async def withdraw(self, agent: str, reason: str) -> bool:
        """Give up the change that an agent wants to land. False: it has none."""
        withdrawn = await self.store.write(lambda store: _withdraw(store, agent, reason, self.clock.now()))
        self.bell.ring()
        return withdrawn

    async def _project(self, key: str) -> Project:
        project = await self.store.read(lambda store: store.find(Project, key))
        if project is None:
            raise NotFound(f"There is no project {key}.")
        return project


def _withdraw(store: Writing, agent: str, reason: str, now: float) -> bool:
    task = store.task_of(agent)
    change = store.change_of_task(task.id) if task else None
    if task is None or change is None or task.state is not TaskState.LANDING:
        return False
    if change.state is ChangeState.TESTING:
        raise Conflict(
            f"{change.id} is being tested and may land at any moment.",
            hint=f"See `windlass queue`; once it has landed, `windlass undo {change.id}` takes it back.",
        )
    closed = change.move(ChangeState.CLOSED, reason=reason)
    store.record("change.closed", change.id, closed, task.move(TaskState.CANCELLED, now=now, reason=reason))
    withdraw(store, channel_of(task.id), "The change was given up.", now)
    return True


def _undoing(store: Reading, key: str) -> Change | None:
    """The change that undoes this one, unless it was refused."""
    every = [*store.changes(), *store.changes(ended=True)]
    alive = (each for each in every if each.state not in (ChangeState.REJECTED, ChangeState.CLOSED))
    return next((each for each in alive if each.undoes == key), None)
