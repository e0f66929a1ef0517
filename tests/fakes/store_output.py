"""The output of runs in the memory store."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from windlass.core.nouns.run import Chunk, Run
from windlass.core.runs.packed_output import unpack


@dataclass(slots=True)
class MemoryOutput:
    """Chunks in order, and those that were packed."""

    chunks: dict[str, list[Chunk]] = field(default_factory=dict)
    packed: dict[tuple[str, int], tuple[str, bytes]] = field(default_factory=dict)


class MemoryOutputReading:
    """What `core.store.Reading` asks about output."""

    def __init__(self, output: MemoryOutput, runs: Callable[[], Sequence[Run]]) -> None:
        self._output = output
        self._runs = runs

    def output_end(self, run: str, /) -> int:
        kept = self._output.chunks.get(run)
        return kept[-1].end if kept else 0

    def chunks(self, run: str, *, offset: int = 0, limit: int = 100) -> list[Chunk]:
        kept = self._output.chunks.get(run, [])
        begin = bisect_right(kept, offset, key=lambda chunk: chunk.end)
        return [self._whole(chunk) for chunk in kept[begin : begin + max(limit, 0)]]

    def last_output(self, runs: Sequence[str], /) -> dict[str, float]:
        return {run: kept[-1].at for run in runs if (kept := self._output.chunks.get(run))}

    def unpacked_runs(self, *, before: float, limit: int) -> list[Run]:
        over = [run for run in self._runs() if run.ended_at is not None and run.ended_at < before]
        left = [run for run in over if self.unpacked(run.id, limit=1)]
        return sorted(left, key=lambda run: run.ended_at or 0.0)[:limit]

    def unpacked(self, run: str, /, *, limit: int) -> list[Chunk]:
        kept = self._output.chunks.get(run, [])
        return [chunk for chunk in kept if (run, chunk.offset) not in self._output.packed][:limit]

    def output_size(self) -> tuple[int, int]:
        every = [chunk for kept in self._output.chunks.values() for chunk in kept]
        kept = (self._output.packed.get((chunk.run, chunk.offset), ("", chunk.content))[1] for chunk in every)
        return sum(len(chunk.content) for chunk in every), sum(map(len, kept))

    def _whole(self, chunk: Chunk) -> Chunk:
        form, content = self._output.packed.get((chunk.run, chunk.offset), ("", chunk.content))
        return replace(chunk, content=unpack(form, content, len(chunk.content)))
