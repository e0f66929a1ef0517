"""The dispatch tick: ready tasks get their first run, within the limits."""

from __future__ import annotations

from collections.abc import Container
from functools import partial

from windlass.core.nouns.agent import Agent
from windlass.core.nouns.message import Delivery
from windlass.core.nouns.run import Cause
from windlass.core.nouns.task import Task, TaskState
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading
from windlass.engine.projects.absences import Absences
from windlass.engine.radar.tick import Key, Radar
from windlass.engine.records import instances
from windlass.engine.runs.start import Runs
from windlass.engine.slots import Slots
from windlass.engine.troubles import Troubles


class Dispatch:
    """Starts ready tasks, oldest first."""

    def __init__(
        self, ports: Ports, runs: Runs, slots: Slots, radar: Radar, troubles: Troubles, *, absences: Absences
    ) -> None:
        self.store = ports.store
        self.runs = runs
        self.slots = slots
        self.radar = radar
        self.troubles = troubles
        self.absences = absences

    async def tick(self) -> bool:
        """Start every ready task that there is a slot and a repository for, and that the radar does not hold."""
        for task, agent in await self.store.read(_ready):
            with self.troubles.noted("dispatch"):
                if not await self.absences.of(agent) and await self.slots.free(agent):
                    unseen = await self.radar.unseen() if task.paths else frozenset()
                    held, mail = await self.store.read(partial(self._look, task, agent, unseen))
                    if not held:
                        await self.runs.start(agent, task, Cause.TASK, mail=mail)
        return False

    def _look(self, task: Task, agent: Agent, unseen: Container[Key], store: Reading) -> tuple[str, list[Delivery]]:
        """Why the radar holds a task, if it does; and the mail that its agent is told with it."""
        return self.radar.held(store, task, unseen), store.undelivered(reader=agent.id)


def _ready(store: Reading) -> list[tuple[Task, Agent]]:
    """Tasks that may begin, oldest first, with their agents; one of each agent, if no other task of its goes on.

    An agent whose run is alive is refused when it is claimed.
    """
    ready = store.ready_tasks()
    if not ready:
        return []
    busy = {task.agent for task in store.unfinished_tasks() if task.state is not TaskState.OPEN}
    found = []
    for task in ready:
        agent = None if task.agent in busy else store.find(Agent, task.agent)
        if agent and instances.admits(store, agent, (), task) and not instances.turn_of(store, agent):
            busy.add(agent.id)
            found.append((task, agent))
    return found
