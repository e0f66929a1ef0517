"""Stage changes on top of one another, and refuse or hold those that can't be staged."""

from __future__ import annotations

from windlass.core.errors import Conflict, TakenBack
from windlass.core.gate import guarded_files
from windlass.core.gate.stacks import Clash, Stack
from windlass.core.nouns.change import Change, Hold, LandingShape
from windlass.core.ports import Ports
from windlass.core.render import conflict_note, taken_back_note
from windlass.core.settings.schema import Settings
from windlass.engine.gate.known_trials import QueueView
from windlass.engine.gate.record import GateRecord, Refusal


class Staging:
    """Makes the candidates of stacks, one on the other."""

    def __init__(self, ports: Ports, verdicts: GateRecord) -> None:
        self.git = ports.git
        self.guards = (guarded_files.SETTINGS, *ports.library.guarded)
        self.verdicts = verdicts

    async def put(self, view: QueueView, part: Stack, change: Change) -> bool:
        """Stage one change on those below it. Returns False if it can't be there, which is then recorded."""
        trials, settings, under = view.trials, view.settings, part[:-1]
        onto = trials.staged[under].commit if under else trials.tip
        shape = settings.gate.shape
        try:
            candidate = await self.git.stage(view.project, change.head, _message(change), onto=onto, shape=shape)
        except (TakenBack, Conflict) as error:
            if not under:
                await self._refuse(view, change, error)
            else:
                trials.clashes.append(Clash(under=under, change=change.id))
            return False
        if not candidate.commits or (candidate.shape is not LandingShape.MERGE and not candidate.files):
            if under:
                trials.clashes.append(Clash(under=under, change=change.id))
            else:
                await self.verdicts.closed(change, "main has all of it already")
        elif change.allowed != change.head and (file := guarded_files.guarded(candidate.files, settings, self.guards)):
            await self._hold(change, file, settings)
        else:
            trials.staged[part] = candidate
            return True
        return False

    async def _refuse(self, view: QueueView, change: Change, error: Conflict) -> None:
        main = view.project.main
        if isinstance(error, TakenBack):
            refusal = Refusal("stands on what main has lost", taken_back_note(change, main, str(error)))
        else:
            refusal = Refusal("conflicts with main", conflict_note(change, main, str(error)))
        await self.verdicts.refused(change, refusal, view.settings.limits)

    async def _hold(self, change: Change, file: str, settings: Settings) -> None:
        """Hold a change to a guarded file: no agent decides how its own work is tested, or what it may do."""
        why = guarded_files.decides(file, settings, self.guards)
        ask = (
            f"{change.id} ({change.title}) changes {file}, which {why}, so it does not land by itself. Look at it with"
            f" `windlass change diff {change.id}`; then `windlass queue release {change.id}` lets it go to the checks,"
            f" and `windlass queue drop {change.id}` gives it up."
        )
        await self.verdicts.held(change, Hold.GUARD, f"it changes {file}", ask)


def _message(change: Change) -> str:
    """The message of the commit on main: what, by whom, and where to look it up."""
    facts = {"Change": change.id, "Agent": change.agent, "Task": change.task, "Undoes": change.undoes}
    lines = [f"{name}: {value}\n" for name, value in facts.items() if value]
    return f"Land {change.id}: {change.title}\n\n{''.join(lines)}"
