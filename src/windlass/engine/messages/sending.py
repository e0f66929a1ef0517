"""Sending a message: one question to the store, and one transaction."""

from __future__ import annotations

from dataclasses import dataclass, replace

from windlass.core.address import check_name
from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput, NotAllowed, NotFound
from windlass.core.messages.idempotency import Repeated, check_same
from windlass.core.messages.loop_guard import linked
from windlass.core.messages.members import Members, Speaker
from windlass.core.messages.new_message import NewMessage
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Change
from windlass.core.nouns.message import Kind, Message
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Run
from windlass.core.nouns.task import Task
from windlass.core.ports.store import Reading, Writing
from windlass.core.workflows.instance import Instance
from windlass.engine.messages.directory import members, members_for, settled
from windlass.engine.messages.handoffs import HandoffRule, check_handoff
from windlass.engine.records.instances import check_words, of_agent
from windlass.engine.records.messages import home_channel, put


@dataclass(frozen=True, slots=True, kw_only=True)
class SendFacts:
    """Everything that a message needs of the store before it can be sent, as it was at one moment."""

    members: Members
    """Those at work and those who are named, without the agents' files."""
    home: str
    """The channel of the agent that speaks."""
    agent: Agent | None
    """Nobody: a person speaks."""
    run: Run | None
    instance: Instance | None
    """Of the agent that speaks."""
    known: Message | None
    """The message that was sent under the same key."""


def read_facts(speaker: Speaker, new: NewMessage, project: Project, store: Reading) -> SendFacts:
    """Read the facts. Refuse a channel or a reply that its speaker may not use, unless the message was sent before."""
    agent = store.find(Agent, speaker.address)
    facts = SendFacts(
        members=members_for(project, new, store),
        home=home_channel(store, agent) if agent else "main",
        agent=agent,
        run=store.find(Run, speaker.run) if speaker.run else None,
        instance=of_agent(store, agent) if agent else None,
        known=store.keyed(speaker.address, new.key) if new.key else None,
    )
    if facts.known is None:
        new.check()
        if agent and speaker.run and new.channel not in ("", facts.home):
            raise NotAllowed(f"{speaker.address} can't speak in {new.channel}.", hint=f"Its channel is {facts.home}.")
        check_channel(store, project, new.channel)
        if new.reply_to:
            _check_reply(store, speaker, new, facts.home)
    return facts


def refuse_stopped(store: Reading, speaker: Speaker) -> None:
    """Refuse the words of a run that was stopped after it was let in."""
    run = store.find(Run, speaker.run) if speaker.run else None
    if run is not None and run.stopping:
        raise NotAllowed("This run is over; nobody speaks for it any more.")


def check_channel(store: Reading, project: Project, channel: str) -> None:
    """Refuse a channel that does not exist."""
    kind, slash, key = channel.partition("/")
    if channel.startswith("@"):
        check_name(channel[1:])
    elif slash and kind in ("task", "change"):
        noun = store.find(Task, key) if kind == "task" else store.find(Change, key)
        if noun is None or noun.project != project.id:
            raise NotFound(f"There is no {kind} {key} here.", hint="`windlass list` and `windlass queue` show them.")
    elif channel not in ("", "main"):
        meant = near_miss(channel, ["main", *members(project, store).instances()])
        kinds = "Channels are main, @instance, task/t12 and change/c3."
        raise BadInput(f"{channel!r} is no channel.", hint=f"{meant} {kinds}".strip())


def _check_reply(store: Reading, speaker: Speaker, new: NewMessage, home: str) -> None:
    found = store.find(Message, new.reply_to)
    seen = found is not None and (speaker.is_person or found.seen_by(speaker.address, home))
    if found is None or found.project != new.project or not seen:
        raise NotFound(f"There is no message {new.reply_to}.", hint="`windlass peek` shows what was said.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """A message on its way into the log, as one transaction."""

    speaker: Speaker
    project: Project
    message: Message
    new: tuple[Agent, ...]
    """Readers who are stored together with the message."""
    addressed: tuple[str, ...]
    """Readers to whom the message speaks; the others only get it."""
    rule: HandoffRule

    def make(self, store: Writing) -> Message:
        """Write the message and its new readers; or find the message that was sent under the same key."""
        known = store.keyed(self.message.sender, self.message.key) if self.message.key else None
        if known is not None:
            check_same(known, Repeated.of(self.message), self.project.name)
            return known
        self._check_speaker(store)
        agents = {agent.id: settled(store, agent, self.project) for agent in self.new}
        for agent in agents.values():
            if store.find(Agent, agent.id) is None:
                store.record("agent.added", agent.id, agent)
        hops, chain = linked(self.speaker.address, heard(store, self.speaker, self.message.reply_to))
        message = replace(
            self.message,
            id=store.next_id(Message),
            channel=self.message.channel or self._channel(store),
            to=tuple(agents[name].id if name in agents else name for name in self.message.to),
            hops=hops,
            chain=chain,
        )
        addressed = {agents[name].id if name in agents else name for name in self.addressed}
        return put(store, message, quiet={reader for reader in message.to if reader not in addressed})

    def _check_speaker(self, store: Reading) -> None:
        """Refuse an agent that was stopped, one without context that speaks to others, and work for the wrong ones."""
        refuse_stopped(store, self.speaker)
        agent = store.find(Agent, self.speaker.address)
        if agent is not None:
            check_words(store, agent, self.message.to)
            if self.message.kind is Kind.HANDOFF or not self.message.broadcast:
                check_handoff(store, agent, self.rule, self.message.kind, self.addressed)

    def _channel(self, store: Reading) -> str:
        """The channel if nobody named one: the speaker's, or the one that all of a person's readers share."""
        names = self.message.to if self.speaker.is_person else (self.speaker.address,)
        agents = [store.find(Agent, name) for name in names]
        homes = {home_channel(store, agent) if agent else "main" for agent in agents}
        return homes.pop() if len(homes) == 1 else "main"


def heard(store: Reading, speaker: Speaker, answered: str = "") -> list[Message]:
    """The message that may have led to an agent's words: of all that its run may have heard, the longest way."""
    led = store.longest_way(speaker.run, answered=answered)
    return [led] if led else []
