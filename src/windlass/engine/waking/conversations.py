"""What was answered to a question, as soon as it was."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from windlass.core import policy
from windlass.core.address import HUMAN
from windlass.core.errors import NotAllowed
from windlass.core.messages.members import Speaker
from windlass.core.nouns.message import Delivery, Message, Receipt
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading
from windlass.engine.bell import Bell
from windlass.engine.records.lookup import get_question
from windlass.engine.waking.deliver import Deliver, mail_of


@dataclass(frozen=True, slots=True)
class Conversation:
    """A question, its answer if there is one, and how far that got with the one who looks."""

    question: Message
    answer: Message | None = None
    receipt: Delivery | None = None
    reason: str = ""
    """Why no answer is to be expected, as things stand; it stays open."""


class Conversations:
    """Waits for answers, as long as one is to be expected."""

    def __init__(self, ports: Ports, bell: Bell, deliver: Deliver) -> None:
        self.store = ports.store
        self.clock = ports.clock
        self.bell = bell
        self.deliver = deliver

    async def to(self, speaker: Speaker, question: str, *, patience: float) -> Conversation:
        """The conversation as soon as it has an answer, or none is to be expected; as it is when the time is over."""
        look = partial(self.store.read, partial(self._look, speaker, question))
        return await self.bell.until(look, lambda found: found.answer or found.reason, patience=patience)

    def _look(self, speaker: Speaker, key: str, store: Reading) -> Conversation:
        asked = get_question(store, key)
        if not speaker.is_person and speaker.address not in (asked.sender, *asked.to):
            raise NotAllowed(f"{key} is a conversation of others.")
        answer = store.answer_to(key)
        if answer is None:
            reasons = [self._silence(store, receipt) for receipt in store.receipts(key)]
            return Conversation(asked, reason="; ".join(reasons) if all(reasons) else "")
        return Conversation(asked, answer, store.find(Delivery, f"{answer.id}/{speaker.address}"))

    def _silence(self, store: Reading, delivery: Delivery) -> str:
        """Why one who was asked will not answer: nothing, if it is at work, is about to be, or is a person."""
        reader = delivery.reader
        if reader == str(HUMAN):
            return ""
        if delivery.receipt is Receipt.FAILED:
            return f"{reader} did not get it: {delivery.reason}"
        mail = mail_of(store, reader, store.undelivered(reader=reader))
        if mail is None:
            return f"nobody is called {reader} any more"
        latest = mail.past[-1] if mail.past else None
        match self.deliver.decide(mail, self.clock.now()) if mail.items else None:
            case policy.Wait(reason, None) if delivery.owed and reason != policy.BUSY:
                return f"{reader} waits: {reason}"
            case policy.Wait(until=None) | None if latest and not latest.live:
                how = f"{latest.outcome}: {latest.reason}" if latest.reason else latest.outcome
                return f"{reader}'s run {latest.number} ended ({how}) without an answer"
        return ""
