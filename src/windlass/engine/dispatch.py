"""The dispatch tick: ready tasks get their first run, within the limits."""

from __future__ import annotations

from windlass.core import policy
from windlass.core.agent import Agent
from windlass.core.errors import Conflict
from windlass.core.ports import Ports, Reading
from windlass.core.run import Cause
from windlass.core.task import Task
from windlass.engine.runs import Runs


class Dispatch:
    """Starts what is ready, oldest first."""

    def __init__(self, ports: Ports, runs: Runs) -> None:
        self.store = ports.store
        self.runs = runs
        self.settings = ports.settings

    async def tick(self) -> bool:
        """Start as many ready tasks as there are free slots."""
        live, ready = await self.store.read(_live_and_ready)
        slots = policy.free_slots(live, self.settings.at("").limits)
        for task, agent in ready[:slots]:
            try:
                await self.runs.start(agent, task, Cause.TASK)
            except Conflict:
                continue  # taken or cancelled since we looked
        return False


def _live_and_ready(store: Reading) -> tuple[int, list[tuple[Task, Agent]]]:
    ready = [(task, store.find(Agent, task.agent)) for task in store.ready_tasks()]
    return len(store.live_runs()), [(task, agent) for task, agent in ready if agent is not None]
