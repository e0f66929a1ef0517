"""What was answered to a question, as soon as it was."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from windlass.core.errors import NotAllowed, NotFound
from windlass.core.message import Delivery, Kind, Message
from windlass.core.ports import Ports
from windlass.core.store import Reading
from windlass.engine.bell import Bell
from windlass.engine.readers import Speaker


@dataclass(frozen=True, slots=True)
class Conversation:
    """A question, its answer if there is one, and how far that got with the one who looks."""

    question: Message
    answer: Message | None = None
    receipt: Delivery | None = None


class Replies:
    """Waits for answers."""

    def __init__(self, ports: Ports, bell: Bell) -> None:
        self.store = ports.store
        self.bell = bell

    async def to(self, speaker: Speaker, question: str, *, patience: float) -> Conversation:
        """The conversation as soon as it has an answer; as it is when the time is over."""
        look = partial(_look, speaker, question)
        ear = self.bell.ear()
        found = await self.store.read(look)
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while found.answer is None and not self.bell.silent:
                    await ear.wait()
                    ear.clear()
                    found = await self.store.read(look)
        return found


def _look(speaker: Speaker, key: str, store: Reading) -> Conversation:
    asked = store.find(Message, key)
    if asked is None or asked.kind is not Kind.ASK:
        raise NotFound(f"There is no conversation {key}.", hint="`windlass inbox` shows what was asked.")
    if not speaker.is_person and speaker.address not in (asked.sender, *asked.to):
        raise NotAllowed(f"{key} is a conversation of others.")
    answer = store.answer_to(key)
    receipt = store.find(Delivery, f"{answer.id}/{speaker.address}") if answer else None
    return Conversation(asked, answer, receipt)
