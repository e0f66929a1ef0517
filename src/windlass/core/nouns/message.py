"""Saying: a message in a channel, and its way to each reader."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class Kind(StrEnum):
    SAY = "say"
    ASK = "ask"
    ANSWER = "answer"
    HANDOFF = "handoff"
    REPORT = "report"
    REMINDER = "reminder"
    COMMENT = "comment"


class Receipt(StrEnum):
    """How far a message got with one reader."""

    PENDING = "pending"
    DELIVERED = "delivered"
    READ = "read"
    ACKED = "acked"
    FAILED = "failed"


_ORDER = (Receipt.PENDING, Receipt.DELIVERED, Receipt.READ, Receipt.ACKED)


class Opinion(StrEnum):
    """The result of a review."""

    APPROVE = "approve"
    CHANGES = "changes"
    """Something must be settled before the change may land."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """Which part of a change a message is about, and what it means for the change."""

    head: str
    turn: int
    """The turn of the change at that time: a later turn means that its author has submitted it again."""
    file: str = ""
    line: int = 0
    blocking: bool = False
    """Whether the change waits until the remark is settled."""
    opinion: Opinion | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Something said by one to others."""

    id: str
    channel: str
    sender: str
    to: tuple[str, ...]
    body: str
    kind: Kind = Kind.SAY
    reply_to: str = ""
    sent_at: float = 0.0
    remark: Remark | None = None
    project: str = ""
    """The project of its channel."""
    direct: bool = False
    """Meant for its readers alone: nobody else sees it, but the person."""
    broadcast: bool = False
    """To everyone in a channel: it starts no agent that has not worked before."""
    key: str = ""
    """The sender's own id for it: a message that comes again with the same key is the same message."""
    claims: str = ""
    """The sender that a person's line names, if it is not the person."""
    hops: int = 0
    """How many agents have spoken in this chain since a person did."""
    chain: tuple[str, ...] = ()
    """The last of those who spoke in this chain, the newest at the end."""
    about: str = ""
    """The task or phase that a question is put to, if it names no agent: `task/t12` or `phase/t9`."""

    def seen_by(self, viewer: str, home: str) -> bool:
        """Whether an agent may see it: what is for all in its home channel, what it said, and what is for it."""
        return viewer in (self.sender, *self.to) or (not self.direct and self.channel == home)

    def hidden_from(self, viewer: str) -> bool:
        """Whether it was meant for others alone; a person, who has no name here, sees everything."""
        return self.direct and viewer not in ("", self.sender, *self.to)

    @property
    def spawns(self) -> bool:
        """Whether it may start someone who has not worked before."""
        return not self.broadcast and self.kind is not Kind.REPORT

    @property
    def informs(self) -> bool:
        """Whether it is good to know, and nobody need be woken for it."""
        comment = self.kind is Kind.COMMENT and not self.reply_to
        return comment and not (self.remark and self.remark.blocking)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One message on its way to one reader."""

    message: str
    reader: str
    receipt: Receipt = Receipt.PENDING
    run: str = ""
    """The run whose prompt carried it."""
    wakes: bool = True
    """Whether its reader is addressed; others are told when they go on."""
    reason: str = ""
    """Why it could not be delivered, or has to wait for a person."""

    @property
    def id(self) -> str:
        return f"{self.message}/{self.reader}"

    @property
    def owed(self) -> bool:
        """Whether its reader has yet to be told."""
        return self.receipt in (Receipt.PENDING, Receipt.DELIVERED)

    def move(self, to: Receipt, *, run: str = "") -> Delivery:
        """Return this delivery further along; it never goes back."""
        carried = replace(self, run=run or self.run, reason="")
        return replace(carried, receipt=to) if self._leads_on(to) else carried

    def _leads_on(self, to: Receipt) -> bool:
        if self.receipt is Receipt.ACKED:
            return False
        if Receipt.FAILED in (self.receipt, to):
            return True
        return _ORDER.index(to) >= _ORDER.index(self.receipt)


GOOD_TO_KNOW = "only good to know; it is told when it goes on"
"""Why a message waits that wakes nobody."""


@dataclass(frozen=True, slots=True)
class MailItem:
    """A message and its delivery to one reader."""

    message: Message
    delivery: Delivery

    @property
    def calls(self) -> bool:
        """Whether its reader is to be woken for it."""
        return self.delivery.wakes and not self.message.informs
