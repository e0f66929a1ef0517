"""Messages in the log: how they are answered, read and acknowledged; each within a transaction."""

from __future__ import annotations

from collections.abc import Sequence

from windlass.core.address import HUMAN
from windlass.core.errors import BadInput, Conflict, NotFound
from windlass.core.messages.loop_guard import linked
from windlass.core.messages.members import Speaker
from windlass.core.messages.questions import compose_answer
from windlass.core.nouns.message import Delivery, Kind, MailItem, Message, Receipt
from windlass.core.ports.store import Reading, Writing
from windlass.core.render import quoted
from windlass.engine.messages.sending import heard, refuse_stopped
from windlass.engine.records.messages import current_task, open_questions, put, say


def place(message: str) -> int:
    """The number of a message's id."""
    if not message:
        return 0
    if not (message[:1] == "m" and message[1:].isdecimal() and len(message) < 19):
        raise BadInput(f"{message!r} is not the id of a message.", hint="It is a letter and a number, like m12.")
    return int(message[1:])


def settle(speaker: Speaker, ask: Message, body: str, now: float, store: Writing) -> Message:
    """Answer a question, once; whoever answers has dealt with it, and may say the same again."""
    known = store.answer_to(ask.id)
    if known is not None and (known.sender, known.body) == (speaker.address, body):
        return known
    if known is not None:
        raise Conflict(f"{ask.id} has an answer already.", hint="`windlass peek` shows it.")
    refuse_stopped(store, speaker)
    hops, chain = linked(speaker.address, [*heard(store, speaker), ask])
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
        body=body if ask.sender == agent else f"{body}\n\n{quoted(ask.body)}",  # then it was not asked by the agent
        direct=ask.direct,
        project=ask.project,
        channel=ask.channel,
        now=now,
        kind=Kind.ANSWER,
        reply_to=ask.id,
        key=key,
    )


def inbox(store: Reading, reader: str, *, everything: bool = False) -> list[MailItem]:
    """The mail that a reader has not acknowledged, or all that it ever got."""
    owed = store.deliveries_to(reader, acked=everything)
    found = ((store.find(Message, delivery.message), delivery) for delivery in owed)
    return [MailItem(message, delivery) for message, delivery in found if message is not None]


def unread(speaker: Speaker, channel: str, after: int, limit: int, store: Reading) -> list[MailItem]:
    """The mail after a message that waits for the speaker, as it is once acknowledged; not what a prompt told it."""
    before = told(store, speaker, channel)
    waiting = [item for item in _in_channel(store, speaker, channel) if item.delivery.owed]
    new = [item for item in waiting if item not in before and place(item.message.id) > after]
    return [_acked(item, speaker) for item in new[:limit]]


def _acked(item: MailItem, speaker: Speaker) -> MailItem:
    return MailItem(item.message, item.delivery.move(Receipt.ACKED, run=speaker.run))


def read(speaker: Speaker, channel: str, after: int, limit: int, store: Writing) -> list[MailItem]:
    """The same, acknowledged together with all that a prompt told the speaker."""
    before = [_acked(item, speaker) for item in told(store, speaker, channel)]
    new = unread(speaker, channel, after, limit, store)
    if before or new:
        store.record("message.acked", speaker.address, *(item.delivery for item in (*before, *new)))
    return new


def told(store: Reading, speaker: Speaker, channel: str) -> list[MailItem]:
    """The mail in the prompt of the speaker's run, or of an earlier one that ended well, and not acknowledged yet."""

    def is_told(delivery: Delivery) -> bool:
        return delivery.receipt is Receipt.READ or (
            delivery.receipt is Receipt.DELIVERED and delivery.run == speaker.run
        )

    return [item for item in _in_channel(store, speaker, channel) if is_told(item.delivery)]


def _in_channel(store: Reading, speaker: Speaker, channel: str) -> list[MailItem]:
    return [item for item in inbox(store, speaker.address) if channel in ("", item.message.channel)]


def ack(speaker: Speaker, messages: Sequence[str], before: bool, store: Writing) -> list[Delivery]:
    """Acknowledge messages, all of them or none; or also what came before them. Again, it changes nothing."""
    named = [_delivery(store, speaker, name) for name in dict.fromkeys(messages)]
    last = max(map(place, messages), default=0) if before else 0
    earlier = store.deliveries_to(speaker.address) if before else []
    every = [*named, *(delivery for delivery in earlier if delivery not in named and place(delivery.message) < last)]
    acked = [delivery.move(Receipt.ACKED, run=speaker.run) for delivery in every]
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
