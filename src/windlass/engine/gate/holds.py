"""Hold changes for reasons that are not their own fault, and release them when the reason is gone."""

from __future__ import annotations

from windlass.core.errors import Conflict, NotAllowed, Unavailable
from windlass.core.gate import rules
from windlass.core.nouns.change import Change, ChangeState, Hold
from windlass.core.nouns.project import Project
from windlass.core.nouns.task import Task, TaskState
from windlass.core.ports import Ports
from windlass.engine.background import Moves
from windlass.engine.gate.record import GateRecord
from windlass.engine.gate.reviews import Reviews

RETRY_SECONDS = 10.0
"""Seconds after which a change is tried again whose way was blocked, such as by the user's checkout."""
CHECKS_RETRY_SECONDS = 300.0
"""Seconds after which a check command that could not run is tried again: it may have been installed."""
MISSING = (
    'Install what is missing, or set another command with `windlass config set checks.command "…"`. '
    "It is tried again when the command changes, when the daemon starts, and every five minutes."
)


class Holds:
    """Holds changes, and releases them."""

    def __init__(self, ports: Ports, moves: Moves, record: GateRecord, reviews: Reviews) -> None:
        self.store = ports.store
        self.git = ports.git
        self.settings = ports.settings
        self.clock = ports.clock
        self.moves = moves
        self.record = record
        self.reviews = reviews
        self._tried_at: dict[str, float] = {}

    async def landed_before(self, project: Project, change: Change) -> bool:
        """Record a landing that a crash kept from being recorded. Returns whether there was one."""
        if change.candidate is None or not await self.git.landed(project, change.candidate.commit):
            return False
        await self.record.landed([(change, await self.git.receipt(project, change.candidate))])
        return True

    async def given_up(self, project: Project, change: Change) -> bool:
        """Close a change whose task was cancelled, as one with several repositories may be. Returns whether it was."""
        task = await self.store.read(lambda store: store.find(Task, change.task))
        return await self.close_if_given_up(project, change, task)

    async def close_if_given_up(self, project: Project, change: Change, task: Task | None) -> bool:
        """The same, where its task is known."""
        if task is None or task.state is not TaskState.CANCELLED:
            return False
        if not await self.landed_before(project, change):
            await self.record.closed(change, task.reason)
        return True

    async def in_doubt(self, change: Change) -> bool:
        """Whether the author is being stopped just now: then the change is given up soon."""
        latest = await self.store.read(lambda store: store.latest_runs([change.agent] if change.agent else []))
        return any(run.live and run.stopping for run in latest.values())

    async def hold(self, change: Change, hold: Hold, reason: str, hint: str) -> None:
        self.tried(change.id)
        ask = f"{change.id} ({change.title}) waits: {reason} {hint}".strip()
        await self.record.held(change, hold, reason, ask)

    async def for_checks(self, project: Project, change: Change) -> None:
        """Hold a change of a project without a check command, and ask the person for one."""
        ask = (
            f"{change.id} ({change.title}) waits: {project.name} has no check command, and nothing lands untested. "
            'Set one with `windlass config set checks.command "…"`.'
        )
        await self.record.held(change, Hold.CHECKS, "the project has no check command", ask)

    async def for_tests(self, change: Change, gone: str) -> None:
        """Hold a change with which tests are gone: whether they may go is for a person to say."""
        ask = (
            f"{change.id} ({change.title}) passes, but {gone}. Look at it with `windlass change diff {change.id}`; then"
            f" `windlass queue release {change.id}` lets it land, and `windlass queue drop {change.id}` gives it up."
        )
        await self.record.held(change, Hold.GUARD, gone, ask)

    async def release(self, project: Project, queue: list[Change]) -> None:
        """Release held changes whose reason is gone."""
        for change in queue:
            if change.state is ChangeState.HELD:
                await self.given_up(project, change)
        pauses = {change.id: CHECKS_RETRY_SECONDS if change.hold is Hold.CHECKS else RETRY_SECONDS for change in queue}
        due = {key for key, pause in pauses.items() if self.is_over(key, pause)}
        for change in rules.to_release(queue, self.settings.at(project.path).checks, due=due):
            if await self._is_free(project, change):
                await self.record.again(change, "" if change.hold is Hold.REVIEW else change.reason)

    async def _is_free(self, project: Project, change: Change) -> bool:
        match change.hold:
            case Hold.HUMAN | Hold.REVIEW | Hold.GUARD if await self._landed_elsewhere(project, change):
                return False
            case Hold.HUMAN | Hold.GUARD:
                return False
            case Hold.REVIEW:
                return not await self.reviews.objection(change)
            case Hold.CHECKOUT:
                return await self._way_is_free(project, change)
        return True

    def is_over(self, key: str, pause: float) -> bool:
        """Whether a pause since the last try is over. If so, this counts as a try."""
        now = self.clock.monotonic()
        if now - self._tried_at.get(key, -pause) < pause:
            return False
        self.tried(key)
        return True

    async def _way_is_free(self, project: Project, change: Change) -> bool:
        """Try to land a tested change. Returns False if it has landed, or something is still in the way."""
        async with self.moves[project.id]:
            held = await self.store.read(lambda store: store.find(Change, change.id)) or change
            if held.candidate is None or held.state is not ChangeState.HELD:
                return not held.ended
            if await self.landed_before(project, held):
                return False
            if await self.reviews.objection(held) or not self._is_proven(project, held):
                return True  # in the queue it is held for that, or tested with the new command
            current = await self.store.read(lambda store: store.find(Project, project.id)) or project
            if current.paused:
                return False
            try:
                landing = await self.git.land(project, held.candidate)
            except Conflict:
                return True  # main has moved: it must be staged and tested again
            except (NotAllowed, Unavailable):
                return False
            await self.record.landed([(held, landing)])
            return False

    def _is_proven(self, project: Project, change: Change) -> bool:
        command = self.settings.at(project.path).checks.command
        tree = change.candidate.tree if change.candidate else ""
        return any(check.passed and (check.tree, check.command) == (tree, command) for check in change.checks)

    async def _landed_elsewhere(self, project: Project, change: Change) -> bool:
        """Whether a person merged a held change by hand, or main had moved to it before it was held."""
        if await self.landed_before(project, change):
            return True
        landed = await self.git.landed(project, change.head)
        if landed:
            await self.record.closed(change, "main has all of it already")
        return landed

    def tried(self, key: str) -> None:
        """Remember the time of a try."""
        self._tried_at[key] = self.clock.monotonic()

    def forget_try(self, key: str) -> None:
        """The next look is a try again, however soon it comes."""
        self._tried_at.pop(key, None)
