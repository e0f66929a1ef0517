"""The deliver tick: mail wakes its readers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from windlass.core import policy
from windlass.core.address import HUMAN, SYSTEM
from windlass.core.messages.loop_guard import LoopStop, remedy
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.message import Delivery, MailItem, Message
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Cause, Run
from windlass.core.nouns.task import Task, TaskState
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading, Writing
from windlass.core.workflows.instance import Instance, lowered
from windlass.engine.bell import Bell
from windlass.engine.projects.absences import Absences
from windlass.engine.projects.tasks import Tasks
from windlass.engine.records import instances
from windlass.engine.records.messages import tell_person
from windlass.engine.runs.start import Runs
from windlass.engine.slots import NONE_FREE, Slots
from windlass.engine.troubles import Troubles


@dataclass(frozen=True, slots=True)
class Mail:
    """The mail that one agent has not been told yet, and all that decides whether it is woken."""

    agent: Agent
    path: str
    """The folder of its project, whose settings count."""
    task: Task | None
    """Its current task, or its last one."""
    runs: tuple[Run, ...]
    """The runs of that task."""
    past: tuple[Run, ...]
    """All its runs."""
    items: tuple[MailItem, ...]
    turn: str = ""
    """The agent whose turn comes first, where both share a worktree."""
    instance: Instance | None = None
    """The workflow instance that it takes part in."""

    @property
    def idle(self) -> bool:
        """Whether it has no unfinished task."""
        return self.task is None or self.task.ended


_BUSY = policy.Wait(policy.BUSY)


class Deliver:
    """Starts a run for each agent that has mail and may be woken; records why the others wait."""

    def __init__(
        self,
        ports: Ports,
        bell: Bell,
        runs: Runs,
        slots: Slots,
        troubles: Troubles,
        *,
        tasks: Tasks,
        absences: Absences,
    ) -> None:
        self.ports = ports
        self.store = ports.store
        self.bell = bell
        self.tasks = tasks
        self.runs = runs
        self.slots = slots
        self.troubles = troubles
        self.absences = absences

    async def tick(self) -> bool:
        """Wake every agent that has mail and that there is a slot for."""
        for mail in await self.store.read(waiting):
            with self.troubles.noted("deliver"):
                await self._wake(mail)
        return False

    async def _wake(self, mail: Mail) -> None:
        now = self.ports.clock.now()
        match self.decide(mail, now):
            case policy.Wait(reason=policy.BUSY):
                return
            case policy.Wait(reason, until, brake):
                if until is not None:
                    self.bell.ring_in(until - now)
                await self._explain(mail, reason, brake)
            case policy.Wake() if absent := await self.absences.of(mail.agent):
                await self._explain(mail, absent)
            case policy.Wake(session) if await self.slots.free(mail.agent):
                await self._start(mail, session)
            case policy.Wake():
                await self._explain(mail, NONE_FREE)

    async def _start(self, mail: Mail, session: str) -> None:
        """Start a run. One that is called is what its file says today; what goes on, goes on as it was begun."""
        cause = policy.cause_of([item.message for item in mail.items], mail.task)
        agent = await self.tasks.renewed(mail.agent) if cause is Cause.CALL else mail.agent
        same = (agent.provider, dict(agent.options)) == (mail.agent.provider, dict(mail.agent.options))
        deliveries = [item.delivery for item in mail.items]
        await self.runs.start(agent, mail.task, cause, mail=deliveries, session=session if same else "")

    def decide(self, mail: Mail, now: float) -> policy.Wake | policy.Wait:
        """Whether an agent is woken for its mail."""
        provider, limits = self.ports.providers.get(mail.agent.provider), self.ports.settings.at(mail.path).limits
        if mail.instance:
            limits = lowered(limits, mail.instance.limits)
        decided = policy.decide_wake(
            mail.agent,
            mail.runs,
            mail.items,
            limits,
            past=mail.past,
            idle=mail.idle,
            resumes=provider.resumes,
            now=now,
            turn=mail.turn,
        )
        barred = mail.instance and not mail.instance.admits(mail.agent.id, mail.items, mail.task)
        return policy.Wait("its instance starts nobody any more") if barred and decided != _BUSY else decided

    async def _explain(self, mail: Mail, reason: str, brake: LoopStop | None = None) -> None:
        """Record why an agent waits. A wait that only a person can end is told to the person."""
        if all(item.delivery.reason == reason for item in mail.items):
            return
        now = self.ports.clock.now()

        def step(store: Writing) -> None:
            if _hold([item.delivery.id for item in mail.items], reason, store) and brake and brake.until is None:
                _report(mail.items, brake, now, store)

        await self.store.write(step)


def _hold(keys: list[str], reason: str, store: Writing) -> bool:
    """Record why deliveries wait. Returns whether any of them still does."""
    found = (store.find(Delivery, key) for key in keys)
    held = [replace(one, reason=reason) for one in found if one and one.owed and one.reason != reason]
    if held:
        store.record("message.held", held[0].reader, *held, reason=reason)
    return bool(held)


def _report(items: Sequence[MailItem], brake: LoopStop, now: float, store: Writing) -> None:
    """Tell the person of a chain that waits for their word; once, for all whom the same message does not wake."""
    calling = (item.message.id for item in items if item.calls)
    stopped = store.find(Message, brake.message)
    if stopped is None or any(store.keyed(str(SYSTEM), _key(message)) for message in calling):
        return
    owed = (receipt.reader for receipt in store.receipts(stopped.id) if receipt.owed and receipt.wakes)
    readers = dict.fromkeys((*(reader for reader in owed if reader != str(HUMAN)), items[0].delivery.reader))
    whom = "it" if len(readers) == 1 else "them"
    tell_person(
        store,
        f"{stopped.id} from {stopped.sender} does not wake {', '.join(readers)}: {brake.reason}. "
        f"{remedy(*readers)} lets {whom} go on.",
        channel=stopped.channel,
        project=stopped.project,
        now=now,
        direct=True,
        key=_key(stopped.id),
    )


def _key(message: str) -> str:
    """The key under which the person is told what holds a message up: a restart does not tell it again."""
    return f"brake {message}"


def waiting(store: Reading) -> list[Mail]:
    """All agents with mail; not those who are about to begin a task, and are told then."""
    readers = store.readers_waiting()
    ready = {task.agent for task in store.ready_tasks(limit=1000)} if readers else set()
    mail = (mail_of(store, reader, store.undelivered(reader=reader)) for reader in readers)
    return [each for each in mail if each is not None and (each.agent.id not in ready or _is_at_something(each))]


def _is_at_something(mail: Mail) -> bool:
    return mail.task is not None and not mail.task.ended and mail.task.state is not TaskState.OPEN


def mail_of(store: Reading, reader: str, deliveries: list[Delivery]) -> Mail | None:
    """One agent, with the mail that is owed to it; nothing if the agent does not exist."""
    agent = store.find(Agent, reader)
    if agent is None:
        return None
    every = store.runs_of(reader)
    runs = [run for run in every if run.task == every[-1].task]
    task = store.find(Task, runs[-1].task) if runs else None
    if agent.workflow and (task is None or task.ended):  # its instance's task may have come back from the gate
        mine = store.unfinished_tasks(agent=reader)
        task = next((other for other in mine if other.state is TaskState.ACTIVE), task)
    project = store.find(Project, agent.project)
    found = ((store.find(Message, delivery.message), delivery) for delivery in deliveries)
    items = tuple(MailItem(message, each) for message, each in found if message is not None)
    turn = instances.turn_of(store, agent, items)
    instance = instances.of_agent(store, agent)
    return Mail(agent, project.path if project else "", task, tuple(runs), tuple(every), items, turn, instance)
