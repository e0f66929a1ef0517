"""Stopping agents: their runs end, and what they wanted to land does not land any more."""

from __future__ import annotations

from dataclasses import dataclass

from windlass.core.errors import WindlassError
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Change
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading
from windlass.engine.gate.changes import Changes
from windlass.engine.gate.record import IN_QUEUE
from windlass.engine.runs.start import Runs
from windlass.engine.workflows.workflows import Workflows

BY_HAND = "stopped by hand"


@dataclass(frozen=True, slots=True)
class Stopped:
    """The agents that were stopped, and the changes that go on all the same."""

    agents: tuple[str, ...]
    going_on: tuple[Change, ...] = ()
    elsewhere: tuple[str, ...] = ()
    """Agents at work in other projects, which were not meant."""


class Stopping:
    """Stops one agent, or all of them, in the same way."""

    def __init__(self, ports: Ports, runs: Runs, changes: Changes, workflows: Workflows) -> None:
        self.store = ports.store
        self.runs = runs
        self.changes = changes
        self.workflows = workflows

    async def agent(self, name: str) -> bool:
        """End an agent's run, and close the changes that it wants to land. False: there was nothing to stop."""
        stopped = await self.runs.stop(name, BY_HAND)
        if name in await self._running():  # its changes are closed when its run is judged
            return stopped
        return await self.changes.withdraw(name, BY_HAND) or stopped

    async def everyone(self, project: str = "") -> Stopped:
        """End every instance, and stop every agent that has an unfinished task; with `project`, only those there."""
        ended = await self.workflows.stop_all(project)
        at_work = await self.store.read(_at_work)
        names = [agent.id for agent in at_work if project in ("", agent.project)]
        asked = await self.runs.stop_each(names, BY_HAND)
        running = await self._running()
        withdrawn = [name for name in names if name not in running and await self._has_withdrawn(name)]
        stopped = [name for name in names if name in {*asked, *withdrawn}]
        changes = await self.store.read(lambda store: store.changes(project=project))
        return Stopped(
            tuple(dict.fromkeys((*ended, *stopped))),
            tuple(change for change in changes if change.state in IN_QUEUE and change.agent not in running),
            tuple(agent.id for agent in at_work if agent.id not in names),
        )

    async def _running(self) -> set[str]:
        return await self.store.read(lambda store: {run.agent for run in store.live_runs()})

    async def _has_withdrawn(self, name: str) -> bool:
        """Whether the changes of an agent were closed. Where one has landed meanwhile, or can't be asked about, the
        others are closed all the same."""
        try:
            return await self.changes.withdraw(name, BY_HAND)
        except WindlassError:
            return False


def _at_work(store: Reading) -> list[Agent]:
    """The agents that have an unfinished task."""
    names = dict.fromkeys(task.agent for task in store.unfinished_tasks() if task.agent)
    return [agent for name in names if (agent := store.find(Agent, name))]
