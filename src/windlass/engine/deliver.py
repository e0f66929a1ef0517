"""The deliver tick: mail wakes its readers."""

from __future__ import annotations

from dataclasses import dataclass

from windlass.core import policy
from windlass.core.agent import Agent
from windlass.core.message import Delivery, Message
from windlass.core.ports import Ports, Reading
from windlass.core.run import Run
from windlass.core.task import Task
from windlass.engine.bell import Bell
from windlass.engine.runs import Runs
from windlass.engine.slots import Slots
from windlass.engine.troubles import Troubles


@dataclass(frozen=True, slots=True)
class Mail:
    """What one agent has not been told yet."""

    agent: Agent
    task: Task
    runs: tuple[Run, ...]
    deliveries: tuple[Delivery, ...]
    messages: tuple[Message, ...]


class Deliver:
    """Starts a run for each agent that has mail and may be woken."""

    def __init__(self, ports: Ports, bell: Bell, runs: Runs, slots: Slots, troubles: Troubles) -> None:
        self.store = ports.store
        self.clock = ports.clock
        self.bell = bell
        self.runs = runs
        self.providers = ports.providers
        self.slots = slots
        self.troubles = troubles

    async def tick(self) -> bool:
        """Wake every agent that has mail and that there is a slot for."""
        for mail in await self.store.read(_waiting):
            with self.troubles.noted("deliver"):
                await self._wake(mail)
        return False

    async def _wake(self, mail: Mail) -> None:
        resumes = self.providers.get(mail.agent.provider).resumes
        now = self.clock.now()
        match policy.decide_wake(mail.agent, mail.runs, mail.messages, resumes=resumes, now=now):
            case policy.Wait(until=float(until)):
                self.bell.ring_in(until - now)
            case policy.Wake(session) if await self.slots.free(mail.agent.project):
                cause = policy.cause_of(mail.messages)
                await self.runs.start(mail.agent, mail.task, cause, mail=mail.deliveries, session=session)


def _waiting(store: Reading) -> list[Mail]:
    by_reader: dict[str, list[Delivery]] = {}
    for delivery in store.undelivered():
        by_reader.setdefault(delivery.reader, []).append(delivery)
    mail = (_mail(store, reader, deliveries) for reader, deliveries in by_reader.items())
    return [each for each in mail if each is not None]


def _mail(store: Reading, reader: str, deliveries: list[Delivery]) -> Mail | None:
    agent = store.find(Agent, reader)
    every = store.runs_of(reader)
    runs = [each for each in every if each.task == every[-1].task]
    task = store.find(Task, runs[-1].task) if runs else None
    if agent is None or task is None:
        return None
    messages = (store.find(Message, each.message) for each in deliveries)
    return Mail(agent, task, tuple(runs), tuple(deliveries), tuple(each for each in messages if each is not None))
