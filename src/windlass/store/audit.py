"""Does the journal still tell the truth? Finds a changed, missing or invented event or row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from windlass.core import codec
from windlass.core.nouns.event import Event, digest, link
from windlass.core.ports.store import Noun
from windlass.store import rows
from windlass.store.journal import Tip

Journal = Iterable[tuple[Event, bytes]]
"""Events in order, each with its payload as it is kept."""


class JournalAudit:
    """One walk along the journal, then along the tables."""

    def __init__(self) -> None:
        self._tip = Tip()
        self._told: dict[tuple[str, str], int] = {}
        """Which event last told of a row: its number alone, so that a long journal fits into memory."""

    def journal(self, events: Journal, end: Tip) -> str:
        """The first fault in the journal, or nothing."""
        for event, payload in events:
            if fault := self._fault(event, payload):
                return fault
            self._tip = Tip(event.seq, event.chain)
            self._told |= {_key(became): event.seq for became in event.became}
        if self._tip != end:
            return f"Event {self._tip.seq + 1} is missing: the journal ends at {self._tip.seq} instead of {end.seq}."
        return ""

    def tables(self, nouns: Iterable[Noun], event: Callable[[int], Event]) -> str:
        """The first row that is not what its last event says, or nothing."""
        for noun in nouns:
            kind = rows.SHAPES[type(noun)].noun
            seq = self._told.pop((kind, noun.id), 0)
            if not seq:
                return f"The {kind} {noun.id} stands in the store, but no event tells of it."
            if noun not in _became(event(seq), kind):
                return f"The {kind} {noun.id} is not what event {seq} says it became."
        for (kind, key), seq in self._told.items():
            return f"The {kind} {key} is missing, although event {seq} tells of it."
        return ""

    def _fault(self, event: Event, payload: bytes) -> str:
        if event.seq != self._tip.seq + 1:
            return f"Event {self._tip.seq + 1} is missing: event {event.seq} follows {self._tip.seq}."
        if digest(payload) != event.digest:
            return f"Event {event.seq} was changed: it does not carry what its digest says."
        chain = link(
            self._tip.chain,
            seq=event.seq,
            time=event.time,
            kind=event.kind,
            subject=event.subject,
            payload_digest=event.digest,
        )
        return "" if chain == event.chain else f"Event {event.seq} was changed: it does not follow from the one before."


def _became(event: Event, kind: str) -> Iterator[Noun]:
    return (codec.revive(rows.KINDS[kind], each) for each in event.became if each["noun"] == kind)


def _key(became: Mapping[str, object]) -> tuple[str, str]:
    kind = str(became["noun"])
    return kind, codec.revive(rows.KINDS[kind], became).id
