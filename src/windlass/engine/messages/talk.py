"""One way to speak: whatever anyone says to anyone, and how far it got."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from windlass.core.address import HUMAN, SYSTEM, check_name
from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput, NotAllowed, NotFound
from windlass.core.messages.idempotency import Repeated, check_same
from windlass.core.messages.mentions import Mentions, mentions, strangers
from windlass.core.messages.task_notification import is_notification, write_notification
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Change
from windlass.core.nouns.message import Delivery, Kind, Letter, Message
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Run
from windlass.core.nouns.task import Task
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading
from windlass.engine.bell import Bell
from windlass.engine.confinement import Confinements
from windlass.engine.messages import log
from windlass.engine.messages.directory import Directory, Readers, Speaker, instances
from windlass.engine.messages.handoffs import Handoff, Handoffs
from windlass.engine.messages.log import Sending
from windlass.engine.records.instances import check_words
from windlass.engine.records.lookup import get, get_question, project_here
from windlass.engine.records.messages import home_channel, open_questions

MOST = 10_000
BEGINNING = "m0"
"""Before the first message."""
LONGEST_BODY = 1_000_000
SPOKEN = (Kind.SAY, Kind.ASK, Kind.HANDOFF, Kind.REPORT)
"""Kinds that anyone may send; the others follow from something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """What someone wants to say, and to whom."""

    body: str
    project: str
    to: tuple[str, ...] = ()
    """Addresses as they were typed: they are stronger than mentions, and nobody else sees it."""
    everyone: bool = False
    channel: str = ""
    """Default: that of the speaker's instance, or `main`."""
    kind: Kind = Kind.SAY
    reply_to: str = ""
    key: str = ""
    claims: str = ""
    handoff: Handoff | None = None
    seeks: bool = False
    """Whether a person's words that name nobody look for their reader: by triggers, or the only one at work."""
    about: str = ""
    """The task or phase that a question is put to."""


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


Earlier = Callable[[Speaker, str, bool], Awaitable[None]]
"""Takes in what a speaker has said before in a project, where nobody has looked yet; and whether it has gone since."""


class Talk:
    """What is said, by anyone to anyone."""

    def __init__(self, ports: Ports, bell: Bell, fences: Confinements, directory: Directory) -> None:
        self.store = ports.store
        self.clock = ports.clock
        self.chats = ports.chats
        self.bell = bell
        self.fences = fences
        self.directory = directory
        self.handoffs = Handoffs(ports)
        self._earlier: list[Earlier] = []

    # ── speaking ──

    def heed(self, earlier: Earlier) -> None:
        """Let this be done before anyone speaks: each one's words stay in order, in whatever ways they are said."""
        self._earlier.append(earlier)

    async def speaker(self, run: str) -> Speaker:
        """Who speaks in a run; outside every run it is the person."""
        return await self.store.read(partial(_speaker, run)) if run else Speaker(str(HUMAN))

    async def catch_up(self, speaker: Speaker, project: str, *, gone: bool = False) -> None:
        """Take in what it has said before, in ways in which nobody waits for us."""
        for each in self._earlier:
            await each(speaker, project, gone)

    async def send(self, speaker: Speaker, post: Post) -> Message:
        """Say it. What comes again under the same key is the message that was sent then."""
        await self.catch_up(speaker, post.project)
        return await self.put(speaker, post)

    async def put(self, speaker: Speaker, post: Post) -> Message:
        """The same, whatever its speaker may have said before."""
        project = await self.store.read(lambda store: project_here(store, post.project))
        post = self._notified(post)
        body = await self._words(speaker, project, post)
        if known := await self.store.read(partial(_said_before, speaker, replace(post, body=body), project.name)):
            return known
        await self._check_place(speaker, post)
        readers, spoken = await self._readers(speaker, project, replace(post, body=body))
        agent = await self.store.read(partial(_check_voice, speaker, readers.to))
        if agent is not None and (post.kind is Kind.HANDOFF or not _is_broadcast(post)):
            await self.handoffs.check(agent, project, post.kind, spoken.addressed)
        message = Message(
            id="",
            channel=post.channel,
            sender=speaker.address,
            to=readers.to,
            body=body,
            kind=post.kind,
            reply_to=post.reply_to,
            sent_at=self.clock.now(),
            project=project.id,
            direct=bool(post.to),
            broadcast=_is_broadcast(post),
            key=post.key,
            claims=post.claims,
            about=post.about,
        )
        sent = await self.store.write(Sending(speaker, project, message, readers.new, spoken.addressed).make)
        self.bell.ring()
        return sent

    async def converse(
        self,
        speaker: Speaker,
        project: str,
        body: str,
        *,
        agent: str = "",
        task: str = "",
        phase: str = "",
        claims: str = "",
        key: str = "",
    ) -> Message:
        """Ask an agent, whoever is at a task, or someone at a phase: of several, one who is running, then one idle.

        What comes again under the same key is the question that was asked then.
        """
        known = await self.store.read(lambda store: store.keyed(speaker.address, key)) if key and not agent else None
        look = partial(_target, speaker.address, project, task, phase)
        target = known.to[0] if known and known.to else agent or await self.store.read(look)
        if await self._is_itself(speaker, project, target):
            raise BadInput(f"{speaker.address} can't ask itself.", hint="`windlass list` shows whom you can ask.")
        about = f"task/{task}" if task else f"phase/{phase}" if phase else ""
        post = Post(body=body, project=project, to=(target,), kind=Kind.ASK, claims=claims, key=key, about=about)
        return await self.send(speaker, post)

    async def _is_itself(self, speaker: Speaker, project: str, target: str) -> bool:
        if speaker.is_person:
            return target == speaker.address
        names = await self.directory.names(await self.store.read(lambda store: project_here(store, project)), speaker)
        return (names.get(target) or target) == speaker.address

    async def settle(self, speaker: Speaker, conversation: str, body: str) -> Message:
        """Answer what one was asked. Whoever asked is told."""
        ask = await self.store.read(lambda store: get_question(store, conversation))
        if not speaker.is_person and speaker.address not in ask.to:
            raise NotAllowed(f"{conversation} was not asked of {speaker.address}.")
        if str(SYSTEM) == ask.sender:
            raise NotAllowed(
                f"{conversation} is a question of the gate.", hint="Answer it with `windlass answer NAME`."
            )
        await self.catch_up(speaker, ask.project)
        project = await self.store.read(lambda store: project_here(store, ask.project))
        body = await self._words(speaker, project, Post(body=body, project=ask.project))
        answered = await self.store.write(partial(log.settle, speaker, ask, body, self.clock.now()))
        self.bell.ring()
        return answered

    def _notified(self, post: Post) -> Post:
        """A task notification is a report, in whatever way it comes; and it must be one."""
        if post.kind not in (Kind.SAY, Kind.REPORT) or not is_notification(post.body):
            return post
        return replace(post, kind=Kind.REPORT, body=write_notification(self.chats.notification(post.body)))

    async def _words(self, speaker: Speaker, project: Project, post: Post) -> str:
        """What is said, without an agent's secrets."""
        body = post.handoff.told(post.body) if post.handoff else post.body
        if not body.strip():
            raise BadInput("The message has no words.")
        if len(body.encode("utf-8", "surrogatepass")) > LONGEST_BODY:
            raise BadInput(
                f"The message has more than {LONGEST_BODY} bytes.", hint="Write it to a document, and say where it is."
            )
        run = await self.store.read(lambda store: store.find(Run, speaker.run)) if speaker.run else None
        return self.fences.blotter(run, project).whole(body) if run else body

    async def _check_place(self, speaker: Speaker, post: Post) -> None:
        """Agents speak in their own channel, and answer only what they were asked: questions to people are theirs."""
        if post.to and post.everyone:
            raise BadInput("It is either for some or for all.", hint="Leave out --to or --all.")
        if post.kind is Kind.HANDOFF and not post.to:
            raise BadInput("A hand-off says whom it is for.", hint="Name the reader with --to.")
        if post.kind not in SPOKEN:
            raise BadInput(f"A message of kind {post.kind} can't be sent so.", hint=f"Kinds are {', '.join(SPOKEN)}.")
        agent = await self.store.read(lambda store: store.find(Agent, speaker.address)) if speaker.run else None
        home = await self.store.read(lambda store: home_channel(store, agent)) if agent else post.channel
        if post.channel not in ("", home):
            raise NotAllowed(f"{speaker.address} can't speak in {post.channel}.", hint=f"Its channel is {home}.")
        await self.store.read(partial(_check_names, speaker, post))

    async def _check_channel(self, project: str, channel: str) -> None:
        """Refuse one that is none, or that nobody is in and nothing was ever said in."""
        await self.store.read(partial(_check_channel, project, channel))
        if not channel.startswith("@"):
            return
        places = await self.store.read(partial(instances, project))
        said = await self.store.read(lambda store: store.said(project, channel=channel, limit=1))
        if channel not in places and not said:
            listed = f"There are: main, {', '.join(places)}." if places else "There is: main."
            raise NotFound(
                f"There is no channel {channel} here.", hint=f"{near_miss(channel, places)} {listed}".strip()
            )

    async def _readers(self, speaker: Speaker, project: Project, post: Post) -> tuple[Readers, Mentions]:
        """Whom it is for, and whom it speaks to: those who were typed, everyone, or those whom its words mention."""
        if post.to:
            readers = await self.directory.named(project, speaker, post.to)
            return readers, Mentions(readers.to, readers.to)
        if post.everyone:
            readers = await self.directory.all(project, speaker, await self._circle(speaker, post))
            return readers, Mentions(readers.to, readers.to)
        names = await self.directory.names(project, speaker)
        spoken = mentions(post.body, {*names, str(SYSTEM)})
        if speaker.is_person and post.seeks and not (spoken.all or post.channel or strangers(post.body, names)):
            readers = await self.directory.named(project, speaker, [await self.directory.meant(project, post.body)])
            return readers, Mentions(readers.to, readers.to)
        if str(SYSTEM) in spoken.all and not speaker.is_person:
            raise NotAllowed("An agent can't call on the system.", hint="Write `system` without the @, or ask human.")
        met = [each for each in spoken.all if names.get(each, "-") or each in spoken.addressed]
        found = await self.directory.named(project, speaker, [each for each in met if each != str(SYSTEM)])
        others = Readers(tuple(each for each in found.to if each != speaker.address), found.new)
        return others, Mentions(others.to, tuple(found.ids[each] for each in spoken.addressed if each in found.ids))

    async def _circle(self, speaker: Speaker, post: Post) -> str:
        """The channel whose agents are told: an agent's own, or the one that a person names; nothing: the project."""
        if post.channel and not (post.channel == "main" or post.channel.startswith("@")):
            raise BadInput(
                f"Nobody is at home in {post.channel}, so there is no everyone there.",
                hint="Leave out --channel, or name main or an instance.",
            )
        if speaker.is_person:
            return post.channel
        return await self.store.read(partial(_home_of, speaker))

    # ── hearing ──

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
        """What was said and may be seen, in order: the last so many after another message, or the first.

        It acknowledges nothing."""
        await self.store.read(lambda store: project_here(store, project))
        await self._check_channel(project, channel)
        viewer = "" if speaker.is_person else speaker.address
        after = log.place(since)
        agent = await self.store.read(lambda store: store.find(Agent, viewer)) if viewer else None

        def question(store: Reading) -> list[Message]:
            home = home_channel(store, agent) if agent else "main"
            which = {"channel": channel, "viewer": viewer, "home": home, "to": to}
            return store.said(project, **which, after=after, limit=limit, newest=newest)

        return await self.store.read(question)

    async def inbox(self, reader: str, *, everything: bool = False) -> list[Letter]:
        """What a reader has not acknowledged, or all that it ever got, oldest first."""
        return await self.store.read(lambda store: log.inbox(store, reader, everything=everything))

    async def read(self, speaker: Speaker, *, channel: str = "", limit: int = 0) -> list[Letter]:
        """What is there for the speaker, acknowledged from now on."""
        found = await self.store.write(partial(log.read, speaker, channel, limit or log.MOST))
        if found:
            self.bell.ring()
        return found

    async def unread(self, speaker: Speaker, *, channel: str = "", limit: int = 0) -> list[Letter]:
        """The same, not acknowledged: whoever has shown it does that."""
        return await self.store.read(partial(log.unread, speaker, channel, limit or log.MOST))

    async def told(self, speaker: Speaker, *, channel: str = "") -> list[Letter]:
        """What the speaker's prompt told it: its next reading acknowledges that, too."""
        return await self.store.read(lambda store: log.told(store, speaker, channel))

    async def ack(self, speaker: Speaker, *messages: str, before: bool = False) -> list[Delivery]:
        """Messages are dealt with, all of them or none; or also what came before them. Those named come first."""
        acked = await self.store.write(partial(log.ack, speaker, messages, before))
        self.bell.ring()
        return acked

    async def newest(self, speaker: Speaker, project: str) -> str:
        """The last message that one may see: whoever waits from there on misses nothing."""
        said = await self.peek(speaker, project, limit=1)
        return said[0].id if said else BEGINNING

    async def wait(
        self,
        speaker: Speaker,
        project: str,
        *,
        channel: str = "",
        since: str = "",
        patience: float,
        limit: int = MOST,
    ) -> tuple[list[Message], str]:
        """What others say after this moment, or after a message, as soon as there is something: the oldest first, and
        nothing when the time is over. And from where to wait on, so that nothing is missed."""
        after = since or await self.newest(speaker, project)

        async def heard() -> list[Message]:
            nonlocal after
            while True:
                said = await self.peek(speaker, project, channel=channel, since=after, limit=limit, newest=False)
                others = [each for each in said if each.sender != speaker.address]
                if others or len(said) < limit:
                    return others
                after = said[-1].id  # a whole page of one's own words

        found = await self.bell.until(heard, bool, patience=patience)
        return found, found[-1].id if found else after

    async def listen(self, speaker: Speaker, *, patience: float) -> Message | None:
        """The oldest question that was put to the speaker and has no answer, as soon as there is one."""

        async def asked() -> list[Message]:
            return await self.store.read(lambda store: store.asks_to(speaker.address, limit=1))

        found = await self.bell.until(asked, bool, patience=patience)
        return found[0] if found else None

    # ── a person's answers ──

    async def questions(self, project: str = "", *, viewer: str = "") -> list[Asked]:
        """What a person can answer now, oldest first, as far as an agent may see it."""

        def question(store: Reading) -> list[Asked]:
            agents = [agent for agent in store.agents(limit=MOST) if project in ("", agent.project)]
            asked = [Asked(agent, task, ask) for agent in agents for task, ask in _open(store, agent)]
            seen = (each for each in asked if not each.message.hidden_from(viewer))
            return sorted(seen, key=lambda each: each.message.sent_at)

        return await self.store.read(question)

    async def answer(self, agent: str, words: Sequence[str], *, key: str = "") -> Message:
        """Answer the open questions of an agent, as one text or by their ids; the answer wakes it.

        What comes again under the same key is the answer that was given then, whatever was asked since."""
        found = await self.store.read(lambda store: get(store, Agent, agent))
        await self.catch_up(Speaker(str(HUMAN)), found.project)
        message = await self.store.write(partial(log.reply, agent, words, key, self.clock.now()))
        self.bell.ring()
        return message


def _check_voice(speaker: Speaker, to: Sequence[str], store: Reading) -> Agent | None:
    """The agent that speaks, which may speak to these; nobody for a person."""
    agent = store.find(Agent, speaker.address)
    if agent is not None:
        check_words(store, agent, to)
    return agent


def _home_of(speaker: Speaker, store: Reading) -> str:
    agent = store.find(Agent, speaker.address)
    return home_channel(store, agent) if agent else "main"


def _said_before(speaker: Speaker, post: Post, project: str, store: Reading) -> Message | None:
    """What was sent under the same key, also where its readers have gone since. Raises Conflict if that was another."""
    known = store.keyed(speaker.address, post.key) if post.key else None
    if known is not None:
        repeated = Repeated(
            body=post.body,
            kind=post.kind,
            project=post.project,
            named=post.to,
            broadcast=_is_broadcast(post),
            channel=post.channel,
            reply_to=post.reply_to,
            about=post.about,
        )
        check_same(known, repeated, project)
    return known


def _is_broadcast(post: Post) -> bool:
    return post.everyone or (bool(post.to) and all(each.startswith("@") for each in post.to))


def _speaker(run: str, store: Reading) -> Speaker:
    found = store.find(Run, run)
    agent = store.find(Agent, found.agent) if found else None
    if found is None or agent is None or not found.live:
        raise NotAllowed("This run is over; nobody speaks for it any more.")
    return Speaker(agent.id, agent.project, run)


def _check_channel(project: str, channel: str, store: Reading) -> None:
    kind, slash, key = channel.partition("/")
    if channel.startswith("@"):
        check_name(channel[1:])
    elif slash and kind in ("task", "change"):
        found = store.find(Task, key) if kind == "task" else store.find(Change, key)
        if found is None or found.project != project:
            raise NotFound(f"There is no {kind} {key} here.", hint="`windlass list` and `windlass queue` show them.")
    elif channel not in ("", "main"):
        meant = near_miss(channel, ["main", *instances(project, store)])
        kinds = "Channels are main, @instance, task/t12 and change/c3."
        raise BadInput(f"{channel!r} is no channel.", hint=f"{meant} {kinds}".strip())


def _check_names(speaker: Speaker, post: Post, store: Reading) -> None:
    """Refuse a channel that is none, and a reply to nothing, or to what its speaker can't know."""
    _check_channel(post.project, post.channel, store)
    found = store.find(Message, post.reply_to) if post.reply_to else None
    seen = found is not None and (speaker.is_person or found.seen_by(speaker.address, _home_of(speaker, store)))
    if post.reply_to and (found is None or found.project != post.project or not seen):
        raise NotFound(f"There is no message {post.reply_to}.", hint="`windlass peek` shows what was said.")


def _target(speaker: str, project: str, task: str, phase: str, store: Reading) -> str:
    """Whoever is at a task, or at one of a phase's: one who is running, then one who is idle; oneself last."""
    inside = (each for each in store.unfinished_tasks() if phase and each.parent == phase)
    found = [store.find(Task, task)] if task else [*inside]
    names = [each.agent for each in found if each and each.agent and each.project == project]
    latest = store.latest_runs(names)
    names.sort(key=lambda each: (each == speaker, not (each in latest and latest[each].live)))
    if not names:
        raise NotFound(f"Nobody is at {task or phase or 'that'}.", hint="`windlass list` shows who is at work.")
    return names[0]
