"""Does the journal still tell the truth? Finds a changed, missing or invented event or row."""

from __future__ import annotations

from collections.abc import Callable, Iterable

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
            told = [rows.told(became) for became in event.became if not rows.is_position(became)]
            self._told |= {_key(noun): event.seq for noun in told}
        if self._tip != end:
            return f"Event {self._tip.seq + 1} is missing: the journal ends at {self._tip.seq} instead of {end.seq}."
        return ""

    def tables(self, nouns: Iterable[Noun], event: Callable[[int], Event]) -> str:
        """The first row that is not what its last event says, or nothing."""
        for noun in nouns:
            kind, key = _key(noun)
            seq = self._told.pop((kind, key), 0)
            if not seq:
                return f"The {kind} {key} stands in the store, but no event tells of it."
            if noun not in map(rows.told, event(seq).became):
                return f"The {kind} {key} is not what event {seq} says it became."
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


def _key(noun: Noun) -> tuple[str, str]:
    return rows.SHAPES[type(noun)].noun, noun.id
