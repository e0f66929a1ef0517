"""A sender's own key for a message: what comes again under it is the same message, or a mistake."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windlass.core.address import Address
from windlass.core.agents.definition import is_home
from windlass.core.errors import Conflict
from windlass.core.nouns.message import Kind, Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """What comes under the key of a message that was sent."""

    body: str
    kind: Kind
    project: str
    named: tuple[str, ...]
    """Those who were named, as they were typed; nobody: its words, or its channel, tell whom it is for."""
    broadcast: bool
    channel: str = ""
    """Nothing: that of its speaker."""
    reply_to: str = ""
    about: str = ""
    """The task or phase that a question is put to."""

    @classmethod
    def of(cls, message: Message) -> Repeated:
        return cls(
            body=message.body,
            kind=message.kind,
            project=message.project,
            named=message.to if message.direct and not message.broadcast else (),
            broadcast=message.broadcast,
            channel=message.channel,
            reply_to=message.reply_to,
            about=message.about,
        )


def check_same(known: Message, repeated: Repeated, project: str) -> None:
    """Refuse something else, or for others, under the key of what was sent before; its readers may have gone since."""
    if known.body != repeated.body:
        raise _conflict(known, "says something else")
    if known.kind is not repeated.kind:
        raise _conflict(known, "is a question" if known.kind is Kind.ASK else f"is of kind {known.kind}")
    if (repeated.channel or known.channel) != known.channel:
        raise _conflict(known, f"stands in {known.channel}")
    if repeated.reply_to != known.reply_to:
        raise _conflict(known, f"answers {known.reply_to or 'nothing'}")
    if repeated.about != known.about:
        raise _conflict(known, "is for others")
    same = (known.project, known.broadcast) == (repeated.project, repeated.broadcast)
    if not same or (repeated.named and not _is_for(known, repeated.named, project)):
        raise _conflict(known, "is for others")


def _conflict(known: Message, how: str) -> Conflict:
    return Conflict(f"The key {known.key} is that of {known.id}, which {how}.", hint="Take another.")


def _is_for(known: Message, named: Sequence[str], project: str) -> bool:
    """Whether those who were named are its readers: all of them, and nobody else."""
    if not known.to:  # nobody else was there
        return all(name.startswith("@") for name in named)
    own = Address.parse(known.sender).instance
    covered = [{reader for reader in known.to if _means(name, reader, own, project)} for name in named]
    return all(covered) and {*known.to} <= set[str]().union(*covered)


def _means(name: str, reader: str, own: str, project: str) -> bool:
    """Whether a name that was typed can stand for a reader: a bare one for those at home, or near its speaker."""
    typed, found = Address.parse(name), Address.parse(reader)
    if not typed.name:
        return typed.instance == found.instance
    near = is_home(found.instance, project) or bool(own and found.instance == own)
    return name == reader or (typed.name == found.name and not typed.instance and near)
