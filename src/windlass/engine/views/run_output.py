"""What agents have printed: history first, then live, without a gap."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from functools import partial

from windlass.core.errors import NotAllowed, NotFound
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.run import Chunk, Run
from windlass.core.nouns.task import Task, TaskState
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading
from windlass.core.runs.output_lines import LineSplitter, lines_of
from windlass.engine.bell import Bell
from windlass.engine.records.lookup import get

ROOM = 128_000
"""About how many bytes wait for one reader; one chunk may go beyond that."""
PAGE = 100


@dataclass(frozen=True, slots=True)
class Piece:
    """Some output; and, if it is written for programs, its text for people."""

    run: Run
    chunk: Chunk
    said: tuple[str, ...] | None = None


class RunOutput:
    """Reads an agent's output from the store, which has every byte once."""

    def __init__(self, ports: Ports, bell: Bell) -> None:
        self.store = ports.store
        self.providers = ports.providers
        self.bell = bell

    async def pieces(
        self, name: str, *, number: int = 0, since: float = 0.0, follow: bool = False
    ) -> AsyncIterator[Piece]:
        """An agent's output from a time on, as it is and as people read it."""
        last, rest = None, LineSplitter()
        async for run, chunk in self.read(name, number=number, follow=follow):
            if last and last.run.id != run.id:
                for unfinished in self._unfinished(last, rest):
                    yield unfinished
                rest = LineSplitter()
            rest, whole = rest.feed(chunk.content)
            last = Piece(run, chunk, self._said(run, whole))
            if chunk.at >= since:
                yield last
        for unfinished in self._unfinished(last, rest) if last else ():
            yield unfinished

    def _said(self, run: Run, lines: str) -> tuple[str, ...] | None:
        """These lines as text for people; None if they are that already."""
        provider = self.providers.get(run.provider)
        if not provider.structured:
            return None
        return tuple(text for text in (provider.read(line).text for line in lines_of(lines)) if text)

    def _unfinished(self, last: Piece, rest: LineSplitter) -> Iterator[Piece]:
        """The last line of a run that no newline ended."""
        if said := self._said(last.run, rest.end()):
            yield Piece(last.run, replace(last.chunk, offset=last.chunk.end, content=b""), said)

    async def read(self, name: str, *, number: int = 0, follow: bool = False) -> AsyncIterator[tuple[Run, Chunk]]:
        """An agent's chunks in order; with `follow`, as long as it runs or is about to."""
        done: dict[str, int] = {}
        async for _ in self.bell.rings(output=True):
            over = await self.is_over(name)
            async for run, chunk in self._new(name, number, done):
                yield run, chunk
            if not follow or over:
                return

    async def is_over(self, name: str) -> bool:
        """Whether an agent says no more: it has no live run, and none that is about to start."""
        return await self.store.read(lambda store: _is_over(store, name))

    async def _new(self, name: str, number: int, done: dict[str, int]) -> AsyncIterator[tuple[Run, Chunk]]:
        runs = await self.store.read(lambda store: store.runs_of(name))
        for run in runs:
            if number and run.number != number:
                continue
            while chunks := await self.store.read(partial(_after, run.id, done.get(run.id, 0))):
                for chunk in (each for whole in chunks for each in _split(whole)):
                    done[run.id] = chunk.end
                    yield run, chunk

    async def check(self, name: str, number: int, *, viewer: str = "") -> None:
        """Raises NotFound for an unknown agent or run, NotAllowed if an agent asks for the output of another."""
        if viewer not in ("", name):
            raise NotAllowed(
                f"What {name} prints is for people.", hint=f'Ask it: `windlass ask --agent-id {name} "…"`.'
            )
        _, runs = await self.store.read(lambda store: (get(store, Agent, name), store.runs_of(name)))
        if number and number not in {run.number for run in runs}:
            raise NotFound(f"{name} has no run {number}; it has {len(runs)}.")


def _after(run: str, offset: int, store: Reading) -> list[Chunk]:
    """Some chunks, and fewer if they are large: they stay in memory while a slow reader takes them."""
    found: list[Chunk] = []
    room = ROOM
    while room > 0 and len(found) < PAGE and (chunks := store.chunks(run, offset=offset, limit=1)):
        found += chunks
        offset = found[-1].end
        room -= len(found[-1].content)
    return found


def _split(chunk: Chunk) -> Iterator[Chunk]:
    """A large chunk in parts, after a line where that is possible."""
    begin, content = 0, chunk.content
    while begin < len(content):
        end = begin + ROOM
        if end < len(content):
            end = content.rfind(b"\n", begin, end) + 1 or end
        yield replace(chunk, offset=chunk.offset + begin, content=content[begin:end])
        begin = end


def _is_over(store: Reading, name: str) -> bool:
    run = store.latest_runs([name]).get(name)
    if run is None:
        task = store.task_of(name)
        return task is None or task.ended
    if run.live:
        return False
    task = store.find(Task, run.task)
    return task is None or task.state not in (TaskState.OPEN, TaskState.ACTIVE, TaskState.LANDING)
