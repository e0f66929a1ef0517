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
    NUDGE = "nudge"
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
    """What a review comes to."""

    APPROVE = "approve"
    CHANGES = "changes"
    """Something must be settled before the change may land."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """What a message says about a change, besides its words."""

    head: str
    turn: int
    """The place in the line that the change had then: a later one means that its author has brought it again."""
    file: str = ""
    line: int = 0
    blocking: bool = False
    """Until it is settled, the change does not land."""
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
    """Whose channel it stands in."""
    direct: bool = False
    """Meant for its readers alone: nobody else sees it, but the person."""
    broadcast: bool = False
    """To everyone in a channel: nobody is started by it who has not worked before."""
    key: str = ""
    """The sender's own id for it: what comes again with the same key is the same message."""
    claims: str = ""
    """Whom a person's line says that it comes from."""
    hops: int = 0
    """How many agents have spoken in this chain since a person did."""
    chain: tuple[str, ...] = ()
    """The last of those who spoke in this chain, the newest at the end."""
    about: str = ""
    """What a question was put to, if not to an agent by name: `task/t12` or `phase/t9`."""

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
"""Why what wakes nobody waits."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A message as one reader has it."""

    message: Message
    delivery: Delivery

    @property
    def calls(self) -> bool:
        """Whether its reader is to be woken for it."""
        return self.delivery.wakes and not self.message.informs
