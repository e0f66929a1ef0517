"""The dispatch tick: ready tasks get their first run, within the limits."""

from __future__ import annotations

from functools import partial

from windlass.core.nouns.agent import Agent
from windlass.core.nouns.message import Delivery
from windlass.core.nouns.run import Cause
from windlass.core.nouns.task import Task, TaskState
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading
from windlass.engine.radar.tick import Radar
from windlass.engine.records import instances
from windlass.engine.runs.start import Runs
from windlass.engine.slots import Slots
from windlass.engine.troubles import Troubles

"""Tasks that are looked at: those of a busy agent must not hide those of the others."""


class Dispatch:
    """Starts what is ready, oldest first."""

    def __init__(self, ports: Ports, runs: Runs, slots: Slots, radar: Radar, troubles: Troubles) -> None:
        self.store = ports.store
        self.runs = runs
        self.slots = slots
        self.radar = radar
        self.troubles = troubles

    async def tick(self) -> bool:
        """Start every ready task that there is a slot for, and that the radar does not hold."""
        for task, agent in await self.store.read(_ready):
            with self.troubles.noted("dispatch"):
                if await self.slots.free(agent) and not await self.store.read(partial(self._held, task)):
                    mail = await self.store.read(partial(_owed, agent))
                    await self.runs.start(agent, task, Cause.TASK, mail=mail)
        return False

    def _held(self, task: Task, store: Reading) -> str:
        return self.radar.held(store, task)


def _owed(agent: Agent, store: Reading) -> list[Delivery]:
    """What it has not been told: it is told with its task."""
    return store.undelivered(reader=agent.id)


def _ready(store: Reading) -> list[tuple[Task, Agent]]:
    """What may begin, oldest first: an agent that is at something is given nothing else before that has ended."""
    ready = store.ready_tasks()
    if not ready:
        return []
    busy = {each.agent for each in store.unfinished_tasks() if each.state is not TaskState.OPEN}
    busy |= {agent for agent, run in store.latest_runs([each.agent for each in ready]).items() if run.live}
    found = []
    for task in ready:
        agent = None if task.agent in busy else store.find(Agent, task.agent)
        if agent and instances.admits(store, agent, (), task) and not instances.turn_of(store, agent):
            busy.add(agent.id)
            found.append((task, agent))
    return found
