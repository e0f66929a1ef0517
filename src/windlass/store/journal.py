"""The journal: how an event is made, and chained to the one before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windlass.core import codec
from windlass.core.errors import BadInput, Conflict
from windlass.core.nouns.event import GENESIS, Event, digest, link
from windlass.core.nouns.run import Chunk
from windlass.core.ports.store import Noun
from windlass.store import rows


@dataclass(frozen=True, slots=True)
class Tip:
    """Where the journal ends."""

    seq: int = 0
    chain: str = GENESIS


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """What one step writes: the event, its payload as it is kept, and the columns of each row."""

    event: Event
    payload: bytes
    columns: tuple[dict[str, Any], ...] = ()

    @property
    def tip(self) -> Tip:
        return Tip(self.event.seq, self.event.chain)


def enter(
    tip: Tip, kind: str, subject: str, *, now: float, nouns: Sequence[Noun] = (), data: Mapping[str, Any]
) -> JournalEntry:
    """Make the next event. Raises BadInput for a value that could not be read back the same."""
    try:
        plain = [codec.plain(noun) for noun in nouns]
        said = codec.plain(data)
        rows.check_numbers([said, *plain])
        columns = tuple(rows.write(noun, each) for noun, each in zip(nouns, plain, strict=True))
        became = [{"noun": rows.SHAPES[type(noun)].noun, **each} for noun, each in zip(nouns, plain, strict=True)]
        payload = pack(said, became)
        return JournalEntry(_event(tip, float(now), kind, subject, payload), payload, columns)
    except UnicodeEncodeError as error:
        raise BadInput(f"Event {kind!r} has text with half of a surrogate pair, which cannot be kept.") from error
    except TypeError as error:
        raise BadInput(f"Event {kind!r} carries something that JSON cannot: {error}.") from error


def enter_output(tip: Tip, chunk: Chunk, *, now: float, end: int) -> JournalEntry:
    """Make the event of a chunk, which must begin where the kept output ends."""
    if not chunk.content:
        raise BadInput(f"A chunk of run {chunk.run} is empty.")
    if chunk.offset != end:
        raise Conflict(
            f"Output of run {chunk.run} is kept up to byte {end}; a chunk that begins at {chunk.offset} does not fit."
        )
    rows.check_numbers([chunk.at])
    data = {"run": chunk.run, "offset": chunk.offset, "length": len(chunk.content)}
    return enter(tip, "run.output", chunk.run, now=now, data=data)


def pack(data: Mapping[str, Any], became: Iterable[Mapping[str, Any]]) -> bytes:
    """An event's payload, as it is hashed and kept."""
    return codec.encode({"data": data, "became": list(became)})


def unpack(payload: bytes | str) -> tuple[dict[str, Any], tuple[dict[str, Any], ...]]:
    """An event's data, and the rows as they became."""
    inside = codec.decode(payload)
    return inside["data"], tuple(inside["became"])


def _event(tip: Tip, now: float, kind: str, subject: str, payload: bytes) -> Event:
    for text in (kind, subject):
        text.encode()
    seq, hashed = tip.seq + 1, digest(payload)
    chain = link(tip.chain, seq=seq, time=now, kind=kind, subject=subject, payload_digest=hashed)
    data, became = unpack(payload)
    return Event(seq=seq, time=now, kind=kind, subject=subject, data=data, became=became, digest=hashed, chain=chain)
