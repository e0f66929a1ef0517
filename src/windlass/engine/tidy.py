"""The tidy tick: agents whose work is finished are retired, and their clean worktrees removed."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from windlass.core.agent import Agent
from windlass.core.errors import NotAllowed, NotFound
from windlass.core.ports import Ports, Reading, Writing
from windlass.core.project import Project
from windlass.core.task import Task, TaskState
from windlass.engine.bell import Bell
from windlass.engine.troubles import Troubles

log = logging.getLogger("windlass")


@dataclass(frozen=True, slots=True)
class Finished:
    """An agent that has nothing left to do."""

    agent: Agent
    project: Project


class Tidy:
    """Removes only what is saved elsewhere, and says where."""

    def __init__(self, ports: Ports, bell: Bell, troubles: Troubles) -> None:
        self.store = ports.store
        self.git = ports.git
        self.clock = ports.clock
        self.bell = bell
        self.troubles = troubles

    async def tick(self) -> bool:
        """Retire every agent whose task is done."""
        for each in await self.store.read(_finished):
            with self.troubles.noted("tidy"):
                await self._retire(each)
        return False

    async def _retire(self, finished: Finished) -> None:
        agent = finished.agent
        try:
            rescue = await self.git.remove_worktree(finished.project, agent)
            kept = ""
        except NotFound:
            rescue, kept = "", ""
        except NotAllowed as error:
            rescue, kept = "", str(error)
            log.warning("%s keeps its worktree: %s", agent.id, error)
        now = self.clock.now()

        def step(store: Writing) -> None:
            store.record("agent.retired", agent.id, replace(agent, retired_at=now), rescue=rescue, kept=kept)

        await self.store.write(step)
        self.bell.ring()


def _finished(store: Reading) -> list[Finished]:
    """Agents with a run behind them, whose task is done."""
    agents = [each for each in store.agents() if not each.persistent and not each.attended]
    latest = store.latest_runs([each.id for each in agents])
    found = []
    for agent in agents:
        run = latest.get(agent.id)
        task = store.find(Task, run.task) if run else None
        project = store.find(Project, agent.project)
        if run and not run.live and task and task.state is TaskState.DONE and project:
            found.append(Finished(agent, project))
    return found
