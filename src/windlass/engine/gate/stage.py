"""Putting changes on top of one another, and what becomes of those that can't be."""

from __future__ import annotations

from windlass.core.errors import Conflict, TakenBack
from windlass.core.gate import guarded_files
from windlass.core.gate.stacks import Clash, Stack
from windlass.core.nouns.change import Candidate, Change, Hold, LandingShape
from windlass.core.nouns.project import Project
from windlass.core.ports import Ports
from windlass.core.render import conflict_note, taken_back_note
from windlass.core.settings.schema import Settings
from windlass.engine.gate.known_trials import KnownTrials
from windlass.engine.gate.record import GateRecord, Refusal


class Staging:
    """Makes the candidates of stacks, one on the other."""

    def __init__(self, ports: Ports, verdicts: GateRecord) -> None:
        self.git = ports.git
        self.guards = (guarded_files.SETTINGS, *ports.library.guarded)
        self.verdicts = verdicts

    async def put(self, project: Project, board: KnownTrials, part: Stack, change: Change, settings: Settings) -> bool:
        """Put one change on those below it. False: it can't be there, and the line knows that."""
        under = part[:-1]
        onto = board.staged[under].commit if under else board.tip
        try:
            candidate = await self._made(project, change, onto, settings)
        except (TakenBack, Conflict) as error:
            if not under:
                await self._refuse(project, change, error, settings)
            else:
                board.clashes.append(Clash(under=under, change=change.id))
            return False
        if not candidate.commits or (candidate.shape is not LandingShape.MERGE and not candidate.files):
            await self._nothing_new(board, under, change)
        elif change.allowed != change.head and (file := guarded_files.guarded(candidate.files, settings, self.guards)):
            await self._hold(change, file, settings)
        else:
            board.staged[part] = candidate
            return True
        return False

    async def _made(self, project: Project, change: Change, onto: str, settings: Settings) -> Candidate:
        return await self.git.stage(project, change.head, _message(change), onto=onto, shape=settings.gate.shape)

    async def _refuse(self, project: Project, change: Change, error: Conflict, settings: Settings) -> None:
        if isinstance(error, TakenBack):
            refusal = Refusal("stands on what main has lost", taken_back_note(change, project.main, str(error)))
        else:
            refusal = Refusal("conflicts with main", conflict_note(change, project.main, str(error)))
        await self.verdicts.refused(change, refusal, settings.limits)

    async def _nothing_new(self, board: KnownTrials, under: Stack, change: Change) -> None:
        if under:
            board.clashes.append(Clash(under=under, change=change.id))
        else:
            await self.verdicts.closed(change, "main has all of it already")

    async def _hold(self, change: Change, file: str, settings: Settings) -> None:
        """Nobody decides how its own work is tested, or what it may do."""
        why = guarded_files.decides(file, settings, self.guards)
        ask = (
            f"{change.id} ({change.title}) changes {file}, which {why}, so it does not land by itself. Look at it with"
            f" `windlass change diff {change.id}`; then `windlass queue release {change.id}` lets it go to the checks,"
            f" and `windlass queue drop {change.id}` gives it up."
        )
        await self.verdicts.held(change, Hold.GUARD, f"it changes {file}", ask)


def _message(change: Change) -> str:
    """The message of the commit on main: what, by whom, and where to look it up."""
    lines = [f"Land {change.id}: {change.title}", "", f"Change: {change.id}"]
    if change.agent:
        lines.append(f"Agent: {change.agent}")
    if change.task:
        lines.append(f"Task: {change.task}")
    if change.undoes:
        lines.append(f"Undoes: {change.undoes}")
    return "\n".join(lines) + "\n"
