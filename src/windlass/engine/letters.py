"""Messages in the log: how one is put there, answered, read and acknowledged; each within a transaction."""

from __future__ import annotations

from dataclasses import dataclass, replace

from windlass.core.address import Address
from windlass.core.agent import Agent
from windlass.core.brakes import linked
from windlass.core.errors import BadInput, Conflict, NotFound
from windlass.core.message import Delivery, Kind, Letter, Message, Receipt
from windlass.core.project import Project
from windlass.core.store import Reading, Writing
from windlass.engine.readers import Speaker, settled
from windlass.engine.say import home_channel, put

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
            check_same(known, Repeated.of(self.message))
            return known
        names = {each.id: settled(store, each, self.project) for each in self.new}
        fresh = [each for each in names.values() if store.find(Agent, each.id) is None]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """What comes under the key of a message that was sent."""

    body: str
    kind: Kind
    project: str
    named: tuple[str, ...]
    """Those who were named, by id or by name; nobody: its words, or its channel, tell whom it is for."""
    broadcast: bool

    @classmethod
    def of(cls, message: Message) -> Repeated:
        named = message.to if message.direct and not message.broadcast else ()
        return cls(
            body=message.body, kind=message.kind, project=message.project, named=named, broadcast=message.broadcast
        )


def check_same(known: Message, repeated: Repeated) -> None:
    """Refuse something else, or for others, under the key of what was sent before; its readers may have gone since."""
    kind = repeated.kind
    if known.body != repeated.body:
        raise Conflict(f"The key {known.key} is that of {known.id}, which says something else.", hint="Take another.")
    if Kind.ASK in (known.kind, kind) and known.kind is not kind:
        what = "a question" if known.kind is Kind.ASK else "no question"
        raise Conflict(f"The key {known.key} is that of {known.id}, which is {what}.", hint="Take another.")
    called = {*known.to, *(Address.parse(each).name for each in known.to)}
    if (known.project, known.broadcast) != (repeated.project, repeated.broadcast) or not called.issuperset(
        repeated.named
    ):
        raise Conflict(f"The key {known.key} is that of {known.id}, which is for others.", hint="Take another.")


def _heard(store: Reading, speaker: Speaker, answered: str = "") -> list[Message]:
    """What may have led to what an agent says: of all that it may have heard in its run, the longest way."""
    led = store.longest_way(speaker.run, answered=answered)
    return [led] if led else []


def _channel(store: Reading, speaker: Speaker, message: Message) -> str:
    """Where it stands if nobody said: with its speaker, or where a person's one reader is."""
    agent = store.find(Agent, message.to[0] if speaker.is_person and len(message.to) == 1 else speaker.address)
    return home_channel(store, agent) if agent else "main"


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


def inbox(store: Reading, reader: str, *, everything: bool = False) -> list[Letter]:
    """What a reader has not acknowledged, or all that it ever got."""
    owed = store.deliveries_to(reader, acked=everything, limit=MOST)
    found = ((store.find(Message, each.message), each) for each in owed)
    return [Letter(message, each) for message, each in found if message is not None]


def heard_from(reader: str, store: Reading) -> set[str]:
    """Everyone who has ever written to a reader."""
    return {each.message.sender for each in inbox(store, reader, everything=True)}


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


def ack(speaker: Speaker, message: str, before: bool, store: Writing) -> Delivery:
    """Acknowledge one message, or all up to it; doing so again changes nothing."""
    number = place(message)
    delivery = store.find(Delivery, f"{message}/{speaker.address}")
    if delivery is None:
        raise NotFound(
            f"{speaker.address} was never sent {message}.", hint="`windlass inbox` shows what waits to be acknowledged."
        )
    acked = delivery.move(Receipt.ACKED, run=speaker.run)
    earlier = [each.delivery for each in inbox(store, speaker.address) if place(each.message.id) < number]
    others = [each.move(Receipt.ACKED, run=speaker.run) for each in earlier] if before else []
    if others or acked != delivery:
        store.record("message.acked", message, acked, *others)
    return acked
