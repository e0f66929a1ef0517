"""The land tick: one change at a time is staged, tested on the very tree main will have, and landed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial

from windlass.core import gate
from windlass.core.change import Candidate, Change, ChangeState, CheckResult, Hold
from windlass.core.errors import Conflict, NotAllowed, TakenBack, Unavailable
from windlass.core.ports import Ports
from windlass.core.project import Project
from windlass.core.render import conflict_note, rejection, taken_back_note
from windlass.core.settings import CheckSettings, Settings
from windlass.core.task import Task, TaskState
from windlass.engine.bell import Bell
from windlass.engine.lanes import Lanes, Moves
from windlass.engine.projects import Projects
from windlass.engine.reviews import Reviews
from windlass.engine.verdicts import Refusal, Verdicts

RETRY_SECONDS = 10.0
"""How often a change that something outside stood in the way of is tried again."""
CHECKS_RETRY_SECONDS = 300.0
"""How often a change whose check command could not be run is tried again: what is missing may have been installed."""
MISSING = (
    'Install what is missing, or set another command with `windlass config set checks.command "…"`. '
    "It is tried again when the command changes, when the daemon starts, and every five minutes."
)
TRIES = 3
"""How often something unexpected may happen to a change before the others go on without it."""
SETTINGS = ".windlass/config.toml"
"""What decides how changes are tested. What says who agents are and may do is guarded as well."""


class Gate:
    """Moves main, one lane per project. Every step can be repeated after a crash."""

    def __init__(
        self, ports: Ports, bell: Bell, projects: Projects, lanes: Lanes, *, moves: Moves, reviews: Reviews
    ) -> None:
        self.store = ports.store
        self.git = ports.git
        self.checks = ports.checks
        self.settings = ports.settings
        self.clock = ports.clock
        self.guards = (SETTINGS, *ports.library.guarded)
        self.projects = projects
        self.reviews = reviews
        self.lanes = lanes
        self.moves = moves
        self.verdicts = Verdicts(ports, bell)
        self._tried_at: dict[str, float] = {}
        self._failures: Counter[str] = Counter()

    async def tick(self) -> bool:
        """Begin a lane for each project that has changes waiting; see to those that are reviewed."""
        await self.reviews.tend()
        queue = await self.store.read(lambda store: store.changes())
        for project in dict.fromkeys(each.project for each in queue):
            self.lanes.begin(project, partial(self.advance, project))
        return False

    async def advance(self, project_id: str) -> None:
        """Take one project's queue as far as it goes."""
        project = await self.projects.get(project_id)
        if project.paused:
            await self._rest(project)
            return
        await self._release(project)
        while change := gate.next_change(await self._queue(project)):
            if await self._paused(project):
                return
            await self._attempt(project, change)

    async def _paused(self, project: Project) -> str:
        """Why nothing may land now; nothing if it may."""
        return (await self.projects.get(project.id)).paused

    async def _rest(self, project: Project) -> None:
        """Nothing is tested while the queue is paused; what has landed before a crash is written down all the same."""
        for change in await self._queue(project):
            if change.state is ChangeState.TESTING and not await self._landed_before(project, change):
                await self.verdicts.again(change, "")

    async def _attempt(self, project: Project, change: Change) -> None:
        """Try one change; what fails again and again is set aside, so that the others can land."""
        try:
            await self._try(project, change)
        except Exception as error:
            self._failures[change.id] += 1
            if self._failures[change.id] < TRIES:
                await self.verdicts.delayed(change, f"not tried yet: {error}")
            else:
                await self._hold(change, Hold.TROUBLE, str(error), getattr(error, "hint", ""))
            raise  # the lane reports it and pauses
        self._failures.pop(change.id, None)

    async def _try(self, project: Project, change: Change) -> None:
        """Stage, test and land. Only the change's own faults reject it."""
        settings = self.settings.at(project.path)
        if await self._landed_before(project, change) or await self._given_up(project, change):
            return
        if objection := await self.reviews.objection(change):
            await self.verdicts.held(change, Hold.REVIEW, objection, "")
            return
        if not settings.checks.command:
            await self._hold_for_checks(project, change)
            return
        try:
            candidate = await self.git.stage(project, change.head, _message(change))
        except TakenBack as error:
            refusal = Refusal("stands on what main has lost", taken_back_note(change, project.main, str(error)))
            await self.verdicts.refused(change, refusal, settings.limits)
            return
        except Conflict as error:
            refusal = Refusal("conflicts with main", conflict_note(change, project.main, str(error)))
            await self.verdicts.refused(change, refusal, settings.limits)
            return
        if not candidate.commits:
            await self.verdicts.closed(change, "main has all of it already")
        elif guarded := self._guarded(candidate):
            await self._hold_for_settings(change, guarded)
        elif await self.verdicts.staged(change, candidate):
            await self._judge(project, replace(change, candidate=candidate), candidate, settings)

    async def _judge(self, project: Project, change: Change, candidate: Candidate, settings: Settings) -> None:
        """Test the candidate's tree; land it, or send the change back."""
        result, output = await self._test(project, change, candidate, settings.checks)
        if await self._given_up(project, change):
            return
        if result.passed:
            await self._land(project, change, candidate)
        elif not gate.blames_author(result, candidate):
            await self._hold(change, Hold.CHECKS, f"{result.reason}: {result.command}", f"\n{MISSING}")
        else:
            refusal = Refusal(result.reason, rejection(change, result, output))
            await self.verdicts.refused(change, refusal, settings.limits)

    async def _landed_before(self, project: Project, change: Change) -> bool:
        """Main may have moved without our recording it: a crash, or an error right after. Then record it."""
        if change.candidate is None or not await self.git.landed(project, change.candidate.commit):
            return False
        await self.verdicts.landed(change, await self.git.land(project, change.candidate))
        return True

    async def _given_up(self, project: Project, change: Change) -> bool:
        """Whether its task was given up, as one with several repositories may be while this change is still at it."""
        task = await self.store.read(lambda store: store.find(Task, change.task))
        if task is None or task.state is not TaskState.CANCELLED:
            return False
        if not await self._landed_before(project, change):
            await self.verdicts.closed(change, task.reason)
        return True

    async def _test(
        self, project: Project, change: Change, candidate: Candidate, checks: CheckSettings
    ) -> tuple[CheckResult, str]:
        """The verdict on the candidate's tree, asked for once."""
        known = gate.known_result(change, candidate.tree, checks)
        if known is not None:
            return known, ""
        result, output = await self.checks.run(project, candidate, checks, self.clock.now())
        result = replace(result, document=f"checks/{change.id}")
        await self.verdicts.tested(change, result, output)
        return result, output

    async def _land(self, project: Project, change: Change, candidate: Candidate) -> bool:
        """Move main, unless a person has said no since. Whoever says no holds the same lock."""
        async with self.moves[project.id]:
            return await self._may_land(project, change) and await self._move(project, change, candidate)

    async def _may_land(self, project: Project, change: Change) -> bool:
        """The last look before main moves: it is still wanted, nobody objects, and the line is not paused."""
        current = await self._now(change)
        if current.state is not ChangeState.TESTING:
            return False
        if await self._paused(project):
            await self.verdicts.again(current, "")
            return False
        if objection := await self.reviews.objection(change):
            await self.verdicts.held(change, Hold.REVIEW, objection, "")
        return not objection

    async def _move(self, project: Project, change: Change, candidate: Candidate) -> bool:
        try:
            landing = await self.git.land(project, candidate)
        except Conflict as error:
            await self.verdicts.again(await self._now(change), str(error))
        except (NotAllowed, Unavailable) as error:
            await self._hold(change, Hold.CHECKOUT, str(error), error.hint)
        else:
            await self.verdicts.landed(change, landing)
            return True
        return False

    async def _hold(self, change: Change, hold: Hold, reason: str, hint: str) -> None:
        self._tried_at[change.id] = self.clock.monotonic()
        ask = f"{change.id} ({change.title}) waits: {reason} {hint}".strip()
        await self.verdicts.held(change, hold, reason, ask)

    async def _hold_for_checks(self, project: Project, change: Change) -> None:
        """Nothing lands untested: keep it, and ask the person how to test."""
        ask = (
            f"{change.id} ({change.title}) waits: {project.name} has no check command, and nothing lands untested. "
            'Set one with `windlass config set checks.command "…"`.'
        )
        await self.verdicts.held(change, Hold.CHECKS, "the project has no check command", ask)

    def _guarded(self, candidate: Candidate) -> str:
        """The first file of a change that decides how changes are tested, or what agents may do."""
        return next((each for each in candidate.files if any(map(partial(_covers, each), self.guards))), "")

    async def _hold_for_settings(self, change: Change, file: str) -> None:
        """Nobody decides how its own work is tested, or what it may do."""
        decides = "how changes are tested" if file == SETTINGS else "what agents are told and may do"
        ask = (
            f"{change.id} ({change.title}) changes {file}, which decides {decides}, so it does not "
            f"land by itself. To take it, look at it and merge it yourself: git merge {change.branch}"
        )
        await self.verdicts.held(change, Hold.HUMAN, f"it changes {file}", ask)

    async def _release(self, project: Project) -> None:
        """Let held changes go on when what held them is gone."""
        queue = await self._queue(project)
        for change in queue:
            if change.state is ChangeState.HELD:
                await self._given_up(project, change)
        due = {each.id for each in queue if self._is_due(each)}
        for change in gate.to_release(queue, self.settings.at(project.path).checks, due=due):
            if change.hold in (Hold.HUMAN, Hold.REVIEW) and await self._landed_elsewhere(project, change):
                continue
            if change.hold is Hold.REVIEW and not await self.reviews.objection(change):
                await self.verdicts.again(change, "")
            elif change.hold in (Hold.HUMAN, Hold.REVIEW):
                continue
            elif change.hold is not Hold.CHECKOUT or await self._way_is_free(project, change):
                await self.verdicts.again(change, change.reason)

    def _is_due(self, change: Change) -> bool:
        now, pause = self.clock.monotonic(), CHECKS_RETRY_SECONDS if change.hold is Hold.CHECKS else RETRY_SECONDS
        if now - self._tried_at.get(change.id, -pause) < pause:
            return False
        self._tried_at[change.id] = now
        return True

    async def _way_is_free(self, project: Project, change: Change) -> bool:
        """Try to land what has been tested already. False: it has landed, or something is still in the way."""
        async with self.moves[project.id]:
            held = await self._now(change)
            if await self._paused(project):
                return False
            if held.candidate is None or held.state is not ChangeState.HELD:
                return not held.ended
            if await self.reviews.objection(held):
                return True  # it is held for that when its turn comes
            try:
                landing = await self.git.land(project, held.candidate)
            except Conflict:
                return True  # main has moved: it must be staged and tested again
            except (NotAllowed, Unavailable):
                return False
            await self.verdicts.landed(held, landing)
            return False

    async def _landed_elsewhere(self, project: Project, change: Change) -> bool:
        """Whether a person took a held change into main by hand."""
        landed = await self.git.landed(project, change.head)
        if landed:
            await self.verdicts.closed(change, "main has all of it already")
        return landed

    async def _queue(self, project: Project) -> list[Change]:
        queue = await self.store.read(lambda store: store.changes())
        return [each for each in queue if each.project == project.id]

    async def _now(self, change: Change) -> Change:
        return await self.store.read(lambda store: store.find(Change, change.id)) or change


def _covers(file: str, guard: str) -> bool:
    return file.startswith(guard) if guard.endswith("/") else file == guard


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
