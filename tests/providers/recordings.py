"""What real programs have printed, and what it should be read as."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from windlass.core.nouns.run import RunTrouble, TroubleKind, Usage
from windlass.core.runs import output_lines
from windlass.core.runs.output_lines import LineSplitter
from windlass.core.runs.provider import LineReading, Provider
from windlass.providers import load

RECORDED = Path(__file__).with_name("recorded")
PROVIDERS = load()


@dataclass(frozen=True)
class Learned:
    """What a run's whole output tells, in the order of its lines."""

    session: str = ""
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    result: str = ""
    trouble: RunTrouble | None = None
    text: tuple[str, ...] = ()

    @property
    def kind(self) -> TroubleKind | None:
        return self.trouble.kind if self.trouble else None


def recordings(name: str) -> list[Path]:
    """Every recording of one provider."""
    return sorted((RECORDED / name).iterdir())


def lines_of(path: Path) -> list[str]:
    return path.read_bytes().decode().splitlines()


def readings(provider: Provider, pieces: Iterable[bytes]) -> list[LineReading]:
    """The readings of an output that comes in these pieces."""
    state, found = LineSplitter(), ""
    for piece in pieces:
        state, whole = state.feed(piece)
        found += whole
    return [provider.read(line) for line in output_lines.lines_of(found + state.end())]


def learned(provider: Provider, path: Path) -> Learned:
    """All of a recording."""
    known = Learned()
    for reading in readings(provider, [path.read_bytes()]):
        used = reading.usage or Usage()
        counted = {"calls": known.usage.calls, "tool_uses": known.usage.tool_uses}
        usage = replace(used, **counted) if reading.total else known.usage + used
        trouble = reading.trouble or (None if reading.ended else known.trouble)
        known = Learned(
            session=reading.session or known.session,
            model=reading.model or known.model,
            usage=usage,
            result=reading.result or known.result,
            trouble=trouble,
            text=(*known.text, *([reading.text] if reading.text else [])),
        )
    return known
