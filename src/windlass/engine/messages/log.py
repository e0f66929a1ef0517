"""Messages in the log: how one is put there, answered, read and acknowledged; each within a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from windlass.core.address import HUMAN
from windlass.core.errors import BadInput, Conflict, NotFound
from windlass.core.messages.idempotency import Repeated, check_same
from windlass.core.messages.loop_guard import linked
from windlass.core.messages.questions import compose_answer
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.message import Delivery, Kind, Letter, Message, Receipt
from windlass.core.nouns.project import Project
from windlass.core.ports.store import Reading, Writing
from windlass.engine.messages.directory import Speaker, settled
from windlass.engine.records.messages import current_task, home_channel, open_questions, put, say

MOST = 10_000


def place(message: str) -> int:
    """The number of a message's id."""
    if not message:
        return 0
    if not (message[:1] == "m" and message[1:].isdecimal() and len(message) < 19):
        raise BadInput(f"{message!r} is not the id of a message.", hint="It is a letter and a number, like m12.")
    return int(message[1:])


@dataclass(frozen=True, slots=True)
class Sending:
    """A message on its way into the log, as one transaction."""

    speaker: Speaker
    project: Project
    message: Message
    new: tuple[Agent, ...]
    """Readers who are only there from now on."""
    addressed: tuple[str, ...]
    """Readers to whom it speaks; the others only get it."""

    def make(self, store: Writing) -> Message:
        """Write it, with those whom it brings into being; or find what was sent under the same key."""
        known = store.keyed(self.message.sender, self.message.key) if self.message.key else None
        if known is not None:
            check_same(known, Repeated.of(self.message), self.project.name)
            return known
        names = {each.id: settled(store, each, self.project) for each in self.new}
        fresh = [name for name in names.values() if store.find(Agent, name.id) is None]
        for each in fresh:
            store.record("agent.added", each.id, each)
        hops, chain = linked(self.speaker.address, _heard(store, self.speaker, self.message.reply_to))
        message = replace(
            self.message,
            id=store.next_id(Message),
            channel=self.message.channel or _channel(store, self.speaker, self.message),
            to=tuple(names[each].id if each in names else each for each in self.message.to),
            hops=hops,
            chain=chain,
        )
        addressed = {names[each].id if each in names else each for each in self.addressed}
        return put(store, message, quiet={each for each in message.to if each not in addressed})


def _heard(store: Reading, speaker: Speaker, answered: str = "") -> list[Message]:
    """What may have led to what an agent says: of all that it may have heard in its run, the longest way."""
    led = store.longest_way(speaker.run, answered=answered)
    return [led] if led else []


def _channel(store: Reading, speaker: Speaker, message: Message) -> str:
    """Where it stands if nobody said: with its speaker, or where all of a person's readers are."""
    names = message.to if speaker.is_person else (speaker.address,)
    agents = [store.find(Agent, name) for name in names]
    homes = {home_channel(store, agent) if agent else "main" for agent in agents}
    return homes.pop() if len(homes) == 1 else "main"


def settle(speaker: Speaker, ask: Message, body: str, now: float, store: Writing) -> Message:
    """Answer a question, once; whoever answers has dealt with it, and may say the same again."""
    known = store.answer_to(ask.id)
    if known is not None and (known.sender, known.body) == (speaker.address, body):
        return known
    if known is not None:
        raise Conflict(f"{ask.id} has an answer already.", hint="`windlass peek` shows it.")
    hops, chain = linked(speaker.address, [*_heard(store, speaker), ask])
    delivery = store.find(Delivery, f"{ask.id}/{speaker.address}")
    if delivery is not None:
        store.record("message.acked", ask.id, delivery.move(Receipt.ACKED, run=speaker.run))
    answer = Message(
        id=store.next_id(Message),
        channel=ask.channel,
        sender=speaker.address,
        to=(ask.sender,),
        body=body,
        kind=Kind.ANSWER,
        reply_to=ask.id,
        sent_at=now,
        project=ask.project,
        direct=ask.direct,
        hops=hops,
        chain=chain,
    )
    return put(store, answer)


def reply(agent: str, words: Sequence[str], key: str, now: float, store: Writing) -> Message:
    """A person's answer to an agent's last open question, as one text or by ids. Under the same key it is the same."""
    if key and (known := store.keyed(str(HUMAN), key)):
        return known
    asks, task = open_questions(store, agent), current_task(store, agent)
    if not asks or task is None or task.ended:
        raise Conflict(f"{agent} has no open question.", hint=f"See `windlass show {agent}`.")
    ask = asks[-1]
    body = compose_answer(words, ask.body if ask.sender == agent else "")
    return say(
        store,
        sender=str(HUMAN),
        to=(agent,),
        body=body if ask.sender == agent else f"{body}\n\n{ask.body}",  # then it was not asked by the agent
        direct=ask.direct,
        project=ask.project,
        channel=ask.channel,
        now=now,
        kind=Kind.ANSWER,
        reply_to=ask.id,
        key=key,
    )


def inbox(store: Reading, reader: str, *, everything: bool = False) -> list[Letter]:
    """What a reader has not acknowledged, or all that it ever got."""
    owed = store.deliveries_to(reader, acked=everything, limit=MOST)
    found = ((store.find(Message, each.message), each) for each in owed)
    return [Letter(message, each) for message, each in found if message is not None]


def unread(speaker: Speaker, channel: str, limit: int, store: Reading) -> list[Letter]:
    """All that waits for the speaker, as it is once acknowledged; but for what a prompt has told it."""
    before = told(store, speaker, channel)
    new = [each for each in _here(store, speaker, channel) if each.delivery.owed and each not in before][:limit]
    return [_acked(each, speaker) for each in new]


def _acked(letter: Letter, speaker: Speaker) -> Letter:
    return Letter(letter.message, letter.delivery.move(Receipt.ACKED, run=speaker.run))


def read(speaker: Speaker, channel: str, limit: int, store: Writing) -> list[Letter]:
    """The same, acknowledged with what a prompt has told."""
    before = [_acked(each, speaker) for each in told(store, speaker, channel)]
    acked = [*before, *unread(speaker, channel, limit, store)]
    if acked:
        store.record("message.acked", speaker.address, *(each.delivery for each in acked))
    return acked[len(before) :]


def told(store: Reading, speaker: Speaker, channel: str) -> list[Letter]:
    """What a prompt has told the speaker, and it has not acknowledged."""
    return [each for each in _here(store, speaker, channel) if _is_told(each.delivery, speaker.run)]


def _here(store: Reading, speaker: Speaker, channel: str) -> list[Letter]:
    return [each for each in inbox(store, speaker.address) if channel in ("", each.message.channel)]


def _is_told(delivery: Delivery, run: str) -> bool:
    """Whether it stood in the prompt of this run, or of an earlier one that ended well."""
    return delivery.receipt is Receipt.READ or (delivery.receipt is Receipt.DELIVERED and delivery.run == run)


def ack(speaker: Speaker, messages: Sequence[str], before: bool, store: Writing) -> list[Delivery]:
    """Acknowledge messages, all of them or none; or also what came before them. Again, it changes nothing."""
    named = [_delivery(store, speaker, name) for name in dict.fromkeys(messages)]
    last = max(map(place, messages), default=0) if before else 0
    earlier = store.deliveries_to(speaker.address, limit=MOST) if before else []
    every = [*named, *(each for each in earlier if each not in named and place(each.message) < last)]
    acked = [each.move(Receipt.ACKED, run=speaker.run) for each in every]
    if acked != every:  # so there are some
        store.record("message.acked", messages[0], *acked)
    return acked


def _delivery(store: Reading, speaker: Speaker, message: str) -> Delivery:
    place(message)
    found = store.find(Delivery, f"{message}/{speaker.address}")
    if found is None:
        raise NotFound(
            f"{speaker.address} was never sent {message}.", hint="`windlass inbox` shows what waits to be acknowledged."
        )
    return found
