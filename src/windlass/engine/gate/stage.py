"""Stage changes on top of one another, and refuse or hold those that can't be staged."""

from __future__ import annotations

from windlass.core.errors import Conflict, TakenBack, Unfit
from windlass.core.gate.guarded_files import GuardedFile
from windlass.core.gate.stacks import Clash, Stack
from windlass.core.nouns.change import Change, Hold, LandingShape
from windlass.core.ports import Ports
from windlass.core.render import conflict_note, taken_back_note, unfit_note
from windlass.engine.checking import CheckRuns
from windlass.engine.gate.known_trials import QueueView
from windlass.engine.gate.record import GateRecord, Refusal


class Staging:
    """Makes the candidates of stacks, one on the other."""

    def __init__(self, ports: Ports, record: GateRecord, checks: CheckRuns) -> None:
        self.git = ports.git
        self.checks = checks
        self.record = record

    async def put(self, view: QueueView, part: Stack, change: Change) -> bool:
        """Stage one change on those below it. Returns False if it can't be there, which is then recorded."""
        trials, settings, under = view.trials, view.settings, part[:-1]
        onto = trials.staged[under].commit if under else trials.tip
        shape = settings.gate.shape
        try:
            candidate = await self.git.stage(view.project, change.head, _message(change), onto=onto, shape=shape)
        except Conflict as error:
            if not under:
                await self._refuse(view, change, error)
            else:
                trials.clashes.append(Clash(under=under, change=change.id))
            return False
        if not candidate.commits or (candidate.shape is not LandingShape.MERGE and not candidate.files):
            if under:
                trials.clashes.append(Clash(under=under, change=change.id))
            else:
                await self.record.closed(change, "main has all of it already")
        elif change.allowed != change.head and (file := await self.checks.guard(view.project, candidate, settings)):
            await self._hold(change, file)
        else:
            trials.staged[part] = candidate
            return True
        return False

    async def _refuse(self, view: QueueView, change: Change, error: Conflict) -> None:
        main = view.project.main
        if isinstance(error, TakenBack):
            refusal = Refusal("stands on what main has lost", taken_back_note(change, main, str(error)))
        elif isinstance(error, Unfit):
            refusal = Refusal(str(error), unfit_note(change, str(error), error.hint), unfit=True)
        else:
            refusal = Refusal("conflicts with main", conflict_note(change, main, str(error)))
        await self.record.refused(change, refusal, view.settings.limits)

    async def _hold(self, change: Change, file: GuardedFile) -> None:
        """Hold a change to a guarded file: no agent decides how its own work is tested, or what it may do."""
        ask = (
            f"{change.id} ({change.title}) changes {file.name}, which {file.why}, so it does not land by itself."
            f" Look at it with `windlass change diff {change.id}`; then `windlass queue release {change.id}` lets it go"
            f" to the checks, and `windlass queue drop {change.id}` gives it up."
        )
        await self.record.held(change, Hold.GUARD, f"it changes {file.name}", ask)


def _message(change: Change) -> str:
    """The message of the commit on main: what, by whom, and where to look it up."""
    facts = {"Change": change.id, "Agent": change.agent, "Task": change.task, "Undoes": change.undoes}
    lines = [f"{name}: {value}\n" for name, value in facts.items() if value]
    return f"Land {change.id}: {change.title}\n\n{''.join(lines)}"
