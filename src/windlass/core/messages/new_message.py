"""A message as its sender wants it, before it is known who reads it."""

from __future__ import annotations

from dataclasses import dataclass

from windlass.core.address import SYSTEM
from windlass.core.errors import BadInput, NotAllowed
from windlass.core.messages.members import Members, Readers, Speaker
from windlass.core.messages.mentions import Mentions, mentioned_words, mentions, strangers
from windlass.core.nouns.message import Kind

LONGEST_BODY = 1_000_000
SENDABLE = (Kind.SAY, Kind.ASK, Kind.HANDOFF, Kind.REPORT)
"""Kinds that anyone may send; the others follow from something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handoff:
    """All that a reader is told about a piece of work that is handed on."""

    done: str = ""
    needed: str = ""
    files: tuple[str, ...] = ()
    why: str = ""

    def added_to(self, body: str) -> str:
        """A message's text, with a line for each of these."""
        parts = [("Done", self.done), ("Needed", self.needed), ("Files", ", ".join(self.files)), ("Why", self.why)]
        return "\n".join([body, *(f"{name}: {text}" for name, text in parts if text)]).strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    """A text, and for whom it is."""

    body: str
    project: str = ""
    to: tuple[str, ...] = ()
    """Addresses as they were typed: they are stronger than mentions, and nobody else sees the message."""
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

    @property
    def is_broadcast(self) -> bool:
        return self.everyone or (bool(self.to) and all(name.startswith("@") for name in self.to))

    @property
    def text(self) -> str:
        """The words that are sent. Raises BadInput if there are none, or too many."""
        text = self.handoff.added_to(self.body) if self.handoff else self.body
        if not text.strip():
            raise BadInput("The message has no words.")
        if len(text.encode("utf-8", "surrogatepass")) > LONGEST_BODY:
            raise BadInput(
                f"The message has more than {LONGEST_BODY} bytes.", hint="Write it to a document, and say where it is."
            )
        return text

    def names(self) -> set[str]:
        """All names that are typed or stand in the text like a mention, without their instances."""
        return {word.partition("@")[0] for word in (*self.to, *mentioned_words(self.body))} - {""}

    def check(self) -> None:
        """Refuse a message that contradicts itself."""
        if self.to and self.everyone:
            raise BadInput("It is either for some or for all.", hint="Leave out --to or --all.")
        if self.kind is Kind.HANDOFF and not self.to:
            raise BadInput("A hand-off says whom it is for.", hint="Name the reader with --to.")
        if self.kind not in SENDABLE:
            raise BadInput(f"A message of kind {self.kind} can't be sent so.", hint=f"Kinds are {', '.join(SENDABLE)}.")


def decide_readers(members: Members, speaker: Speaker, new: NewMessage, home: str) -> tuple[Readers, Mentions]:
    """Who gets a message, and to whom it speaks: those who were typed, everyone, or those whom its words mention.

    `home` is the channel of an agent that speaks.
    """
    if new.to:
        return _addressed(members.resolve(speaker, new.to))
    if new.everyone:
        if new.channel and not (new.channel == "main" or new.channel.startswith("@")):
            raise BadInput(
                f"Nobody is at home in {new.channel}, so there is no everyone there.",
                hint="Leave out --channel, or name main or an instance.",
            )
        return _addressed(members.everyone(speaker, new.channel if speaker.is_person else home))
    names = members.names(speaker)
    spoken = mentions(new.body, {*names, str(SYSTEM)})
    if speaker.is_person and new.seeks and not (spoken.all or new.channel or strangers(new.body, names)):
        return _addressed(members.resolve(speaker, [members.called(new.body)]))
    if str(SYSTEM) in spoken.all and not speaker.is_person:
        raise NotAllowed("An agent can't call on the system.", hint="Write `system` without the @, or ask human.")
    met = [name for name in spoken.all if names.get(name, "-") or name in spoken.addressed]
    found = members.resolve(speaker, [name for name in met if name != str(SYSTEM)])
    others = Readers(tuple(reader for reader in found.to if reader != speaker.address), found.new)
    return others, Mentions(others.to, tuple(found.ids[name] for name in spoken.addressed if name in found.ids))


def _addressed(readers: Readers) -> tuple[Readers, Mentions]:
    return readers, Mentions(readers.to, readers.to)
