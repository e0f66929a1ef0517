"""One way to speak: whatever anyone says to anyone, and how far it got."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from windlass.core.address import HUMAN, SYSTEM
from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput, NotAllowed, NotFound, WindlassError
from windlass.core.messages.idempotency import Repeated, check_same
from windlass.core.messages.members import Members, Speaker
from windlass.core.messages.new_message import NewMessage, decide_readers
from windlass.core.messages.task_notification import is_notification, write_notification
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.message import Delivery, Kind, MailItem, Message
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Run
from windlass.core.nouns.task import Task
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading
from windlass.engine.bell import Bell
from windlass.engine.confinement import Confinements
from windlass.engine.messages import log
from windlass.engine.messages.directory import Directory, members
from windlass.engine.messages.handoffs import HandoffRule, handoff_rule
from windlass.engine.messages.sending import Sending, check_channel, read_facts
from windlass.engine.records.lookup import get, get_question
from windlass.engine.records.messages import home_channel, open_questions

MOST = 10_000
BEFORE_ALL = "m0"
"""Before the first message."""


@dataclass(frozen=True, slots=True)
class Asked:
    """An open question, and whose work it holds up."""

    agent: Agent
    task: Task
    message: Message


def _open(store: Reading, agent: Agent) -> Iterator[tuple[Task, Message]]:
    task = store.task_of(agent.id)
    if task is not None and not task.ended:
        yield from ((task, ask) for ask in open_questions(store, agent.id)[-1:])


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that was sent, and a sentence for its sender about names that may have been mistyped."""

    message: Message
    hint: str = ""


BeforeSending = Callable[[Speaker, Project, bool], Awaitable[None]]
"""Sends what a speaker has written in other ways before; the last argument says whether the speaker has gone."""


class Talk:
    """Sending, reading, asking and answering; each verb is for people and agents alike."""

    def __init__(self, ports: Ports, bell: Bell, confinement: Confinements, directory: Directory) -> None:
        self.ports = ports
        self.store = ports.store
        self.bell = bell
        self.confinement = confinement
        self.directory = directory
        self._before_sending: list[BeforeSending] = []

    # ── speaking ──

    def before_sending(self, step: BeforeSending) -> None:
        """Call this before anyone speaks: so each speaker's words stay in order, in whatever ways they are said."""
        self._before_sending.append(step)

    async def speaker(self, run: str) -> Speaker:
        """Who speaks in a run; outside every run it is the person. Raises NotAllowed if the run is over."""
        return await self.store.read(partial(speaker_of, run)) if run else Speaker(str(HUMAN))

    async def catch_up(self, speaker: Speaker, project: Project, *, gone: bool = False) -> None:
        """Send what the speaker has written before in other ways, such as its chat file."""
        for step in self._before_sending:
            await step(speaker, project, gone)

    async def send(self, speaker: Speaker, new: NewMessage) -> Message:
        """Send a message in the project whose id it has. See `say`."""
        project = await self.store.read(lambda store: get(store, Project, new.project))
        return (await self.say(speaker, new, project)).message

    async def say(self, speaker: Speaker, new: NewMessage, project: Project) -> Sent:
        """Send a message, after all that its speaker has written before. The same key finds the same message.

        Raises NotFound for an unknown reader, channel or reply, NotAllowed where an agent may not, BadInput and
        Conflict for what contradicts itself or an earlier message under the key.
        """
        await self.catch_up(speaker, project)
        return await self.put(speaker, new, project)

    async def put(self, speaker: Speaker, new: NewMessage, project: Project) -> Sent:
        """The same, whatever the speaker has written before."""
        new = self._as_report(replace(new, project=project.id))
        new = replace(new, body=new.text)
        facts = await self.store.read(partial(read_facts, speaker, new, project))
        if facts.run:
            new = replace(new, body=(await self.confinement.redactor(facts.run, project)).whole(new.body))
        if facts.known is not None:
            check_same(facts.known, _repeated(new), project.name)
            return Sent(facts.known, await self._hint(facts.members, lambda known: known.hint_about_instances(new.to)))
        everyone = replace(facts.members, roster=await self.ports.library.roster(project.path))
        try:
            readers, spoken = decide_readers(everyone, speaker, new, facts.home)
        except WindlassError:  # those who have finished may have been meant, too: all of them are looked at
            readers, spoken = decide_readers(await self._with_past(everyone), speaker, new, facts.home)
        if new.kind is Kind.ASK and readers.to == (speaker.address,):
            raise BadInput(f"{speaker.address} can't ask itself.", hint="`windlass list` shows whom you can ask.")
        sending = Sending(
            speaker=speaker,
            project=project,
            message=self._message(speaker, new, readers.to),
            new=await self.directory.enlist(project, readers, everyone.roster),
            addressed=spoken.addressed,
            rule=handoff_rule(facts.agent, facts.instance, everyone.roster) if facts.agent else HandoffRule(),
        )
        sent = await self.store.write(sending.make)
        if not sent.to:
            return Sent(sent, await self._hint(everyone, lambda known: known.hint_about_mentions(speaker, sent.body)))
        return Sent(sent, await self._hint(everyone, lambda known: known.hint_about_instances(new.to)))

    async def _with_past(self, known: Members) -> Members:
        """The same, with all who have finished; not with those who began since."""
        found = await self.store.read(partial(members, known.project))
        past = {agent.id: agent for agent in found.agents if agent.retired_at is not None}
        return replace(known, agents=[*({agent.id: agent for agent in known.agents} | past).values()])

    async def _hint(self, known: Members, hint: Callable[[Members], str]) -> str:
        """A hint about a name that seems to be nobody's: only then it is held against all who ever were."""
        return hint(await self._with_past(known)) if hint(known) else ""

    def _message(self, speaker: Speaker, new: NewMessage, to: tuple[str, ...]) -> Message:
        return Message(
            id="",
            channel=new.channel,
            sender=speaker.address,
            to=to,
            body=new.body,
            kind=new.kind,
            reply_to=new.reply_to,
            sent_at=self.ports.clock.now(),
            project=new.project,
            direct=bool(new.to),
            broadcast=new.is_broadcast,
            key=new.key,
            claims=new.claims,
            about=new.about,
        )

    def _as_report(self, new: NewMessage) -> NewMessage:
        """A task notification becomes a report, in whatever way it comes. Raises BadInput if it is malformed."""
        if new.kind not in (Kind.SAY, Kind.REPORT) or not is_notification(new.body):
            return new
        return replace(new, kind=Kind.REPORT, body=write_notification(self.ports.chats.notification(new.body)))

    async def settle(self, speaker: Speaker, conversation: str, body: str) -> Message:
        """Answer a question that the speaker was asked; whoever asked is told. A person may answer any agent's.

        Raises NotFound, NotAllowed for a question to others or of the gate, Conflict if there is another answer.
        """
        ask, project, run = await self.store.read(partial(_question, speaker, conversation))
        body = NewMessage(body=body).text
        await self.catch_up(speaker, project)
        body = (await self.confinement.redactor(run, project)).whole(body) if run else body
        return await self.store.write(partial(log.settle, speaker, ask, body, self.ports.clock.now()))

    # ── reading ──

    async def peek(
        self,
        speaker: Speaker,
        project: str,
        *,
        channel: str = "",
        to: str = "",
        since: str = "",
        limit: int = 20,
        newest: bool = True,
    ) -> list[Message]:
        """What was said and the speaker may see, in order: the newest so many after a message, or the oldest.

        It acknowledges nothing. Raises NotFound for a project or channel that does not exist."""
        after = log.place(since)

        def question(store: Reading) -> list[Message]:
            found, agent = get(store, Project, project), store.find(Agent, speaker.address)
            _check_readable(store, found, channel)
            home = home_channel(store, agent) if agent else "main"
            which = {"channel": channel, "viewer": "" if speaker.is_person else speaker.address, "home": home, "to": to}
            return store.said(project, **which, after=after, limit=limit, newest=newest)

        return await self.store.read(question)

    async def inbox(self, reader: str, *, everything: bool = False) -> list[MailItem]:
        """The mail that a reader has not acknowledged, or all that it ever got, oldest first."""
        return await self.store.read(lambda store: log.inbox(store, reader, everything=everything))

    async def read(self, speaker: Speaker, *, channel: str = "", since: str = "", limit: int = MOST) -> list[MailItem]:
        """The mail that the speaker has not read, after a message: acknowledged with all that its prompt told it."""
        return await self.store.write(partial(log.read, speaker, channel, log.place(since), limit))

    async def unread(
        self, speaker: Speaker, *, channel: str = "", since: str = "", limit: int = MOST
    ) -> list[MailItem]:
        """The same, not acknowledged: whoever has shown it does that."""
        return await self.store.read(partial(log.unread, speaker, channel, log.place(since), limit))

    async def receipts(self, messages: Iterable[Message]) -> dict[str, list[Delivery]]:
        """How far each message got with each of its readers, by the id of the message."""
        return await self.store.read(lambda store: {each.id: store.receipts(each.id) for each in messages})

    async def told(self, speaker: Speaker, *, channel: str = "") -> list[MailItem]:
        """The mail that the speaker's prompt told it: its next `read` acknowledges that, too."""
        return await self.store.read(lambda store: log.told(store, speaker, channel))

    async def ack(self, speaker: Speaker, *messages: str, before: bool = False) -> list[Delivery]:
        """Acknowledge messages, all of them or none; with `before`, also earlier ones. The named ones come first."""
        return await self.store.write(partial(log.ack, speaker, messages, before))

    async def newest(self, speaker: Speaker, project: str) -> str:
        """The last message that the speaker may see: whoever waits from there on misses nothing."""
        said = await self.peek(speaker, project, limit=1)
        return said[0].id if said else BEFORE_ALL

    async def wait(
        self, speaker: Speaker, project: str, *, channel: str = "", since: str = "", patience: float, limit: int = MOST
    ) -> tuple[list[Message], str]:
        """The messages of others after now, or after a message, as soon as there are some: oldest first.

        Also the message from which to wait on, so that none is missed."""
        after = since or await self.newest(speaker, project)

        async def heard() -> list[Message]:
            nonlocal after
            while True:
                said = await self.peek(speaker, project, channel=channel, since=after, limit=limit, newest=False)
                others = [message for message in said if message.sender != speaker.address]
                if others or len(said) < limit:
                    return others
                after = said[-1].id  # a whole page of one's own words

        found = await self.bell.until(heard, bool, patience=patience)
        return found, found[-1].id if found else after

    async def listen(self, speaker: Speaker, *, patience: float) -> Message | None:
        """The oldest question that was put to the speaker and has no answer, as soon as there is one."""
        asked = partial(self.store.read, lambda store: store.asks_to(speaker.address, limit=1))
        found = await self.bell.until(asked, bool, patience=patience)
        return found[0] if found else None

    # ── a person's answers ──

    async def questions(self, project: str = "", *, viewer: str = "") -> list[Asked]:
        """The questions that a person can answer now, oldest first; a viewer that is an agent sees not all of them."""

        def question(store: Reading) -> list[Asked]:
            agents = store.agents(project=project)
            asked = [Asked(agent, task, ask) for agent in agents for task, ask in _open(store, agent)]
            seen = (question for question in asked if not question.message.hidden_from(viewer))
            return sorted(seen, key=lambda question: question.message.sent_at)

        return await self.store.read(question)

    async def answer(self, agent: str, words: Sequence[str], *, key: str = "") -> Message:
        """Answer the open questions of an agent, as one text or by their ids; the answer wakes it.

        The same key finds the answer that was given then. Raises Conflict if the agent has no open question."""
        found = await self.store.read(lambda store: get(store, Project, get(store, Agent, agent).project))
        await self.catch_up(Speaker(str(HUMAN)), found)
        return await self.store.write(partial(log.reply, agent, words, key, self.ports.clock.now()))


def speaker_of(run: str, store: Reading) -> Speaker:
    """The agent whose run it is. Raises NotAllowed if the run is over, or was stopped."""
    found = store.find(Run, run)
    agent = store.find(Agent, found.agent) if found else None
    if found is None or agent is None or not found.live or found.stopping:
        raise NotAllowed("This run is over; nobody speaks for it any more.")
    return Speaker(agent.id, agent.project, run)


def _check_readable(store: Reading, project: Project, channel: str) -> None:
    """Refuse a channel that does not exist, or that nobody is in and nothing was ever said in."""
    check_channel(store, project, channel)
    if channel.startswith("@") and not store.said(project.id, channel=channel, limit=1):
        places = members(project, store).instances()
        if channel not in places:
            listed = f"There are: main, {', '.join(places)}." if places else "There is: main."
            raise NotFound(
                f"There is no channel {channel} here.", hint=f"{near_miss(channel, places)} {listed}".strip()
            )


def _repeated(new: NewMessage) -> Repeated:
    return Repeated(
        body=new.body,
        kind=new.kind,
        project=new.project,
        named=new.to,
        broadcast=new.is_broadcast,
        channel=new.channel,
        reply_to=new.reply_to,
        about=new.about,
    )


def _question(speaker: Speaker, conversation: str, store: Reading) -> tuple[Message, Project, Run | None]:
    """The question that is to be answered, its project, and the run that answers."""
    ask = get_question(store, conversation)
    if not speaker.is_person and speaker.address not in ask.to:
        raise NotAllowed(f"{conversation} was not asked of {speaker.address}.")
    if str(SYSTEM) == ask.sender:
        raise NotAllowed(f"{conversation} is a question of the gate.", hint="Answer it with `windlass answer NAME`.")
    return ask, get(store, Project, ask.project), store.find(Run, speaker.run) if speaker.run else None
