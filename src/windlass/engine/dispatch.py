"""The dispatch tick: ready tasks get their first run, within the limits."""

from __future__ import annotations

from windlass.core.agent import Agent
from windlass.core.ports import Ports, Reading
from windlass.core.run import Cause
from windlass.core.task import Task
from windlass.engine.runs import Runs
from windlass.engine.slots import Slots
from windlass.engine.troubles import Troubles


class Dispatch:
    """Starts what is ready, oldest first."""

    def __init__(self, ports: Ports, runs: Runs, slots: Slots, troubles: Troubles) -> None:
        self.store = ports.store
        self.runs = runs
        self.slots = slots
        self.troubles = troubles

    async def tick(self) -> bool:
        """Start every ready task that there is a slot for."""
        for task, agent in await self.store.read(_ready):
            with self.troubles.noted("dispatch"):
                if await self.slots.free(agent.project):
                    await self.runs.start(agent, task, Cause.TASK)
        return False


def _ready(store: Reading) -> list[tuple[Task, Agent]]:
    ready = ((task, store.find(Agent, task.agent)) for task in store.ready_tasks())
    return [(task, agent) for task, agent in ready if agent is not None]
