"""What an agent has changed: in its worktree now, or on main once it has landed."""

from __future__ import annotations

from windlass.core.agent import Agent
from windlass.core.change import Change
from windlass.core.errors import NotFound
from windlass.core.ports import Ports, Reading
from windlass.core.project import Project


class Diffs:
    """Shows changes as text."""

    def __init__(self, ports: Ports) -> None:
        self.store = ports.store
        self.git = ports.git

    async def of(self, name: str) -> str:
        """An agent's difference from main, or the one it has landed."""
        agent, project, change = await self.store.read(lambda store: _about(store, name))
        if change is not None and change.landing is not None:
            return await self.git.diff_between(project, change.landing.before, change.landing.after)
        return await self.git.diff(project, agent)


def _about(store: Reading, name: str) -> tuple[Agent, Project, Change | None]:
    agent = store.find(Agent, name)
    project = store.find(Project, agent.project) if agent else None
    if agent is None or project is None:
        raise NotFound(f"There is no agent {name}.")
    task = store.task_of(agent.id)
    return agent, project, store.change_of_task(task.id) if task else None
