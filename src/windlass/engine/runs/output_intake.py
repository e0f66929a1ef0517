"""The output of runs: stored byte for byte as it comes, and read for facts about the run."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from windlass.core.errors import NotFound
from windlass.core.nouns.run import Chunk, Run, RunTrouble, Usage
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading as StoreReading
from windlass.core.ports.store import Writing
from windlass.core.runs.output_lines import LineSplitter
from windlass.core.runs.provider import LineReading, Provider
from windlass.core.runs.redact import Redactor
from windlass.core.runs.retry_rules import was_halted
from windlass.core.runs.workdir import Site
from windlass.engine.confinement import Confinements
from windlass.engine.records.sites import site_of

STEP = 1_000_000
"""Bytes that are kept in one transaction."""
LITTLE = 32_000
"""Bytes that are understood at once; more of them in a thread."""
LOOK_BACK = 64_000
"""Bytes in which an unfinished line is looked for after a restart."""
MARK = 64
"""Bytes before the reading position that must not have changed."""
FOREIGN = "its file has a second name elsewhere: what stands there now is not taken for its words"
CUT = "its file was emptied or replaced, and what it had not given away by then is lost"


@dataclass(slots=True, kw_only=True)
class OutputPosition:
    """The reading position in one run's output, in this daemon's life."""

    run: Run
    """As it was when we began."""
    offset: int
    lines: LineSplitter
    site: Site
    """The agent and its projects."""
    cut: int
    """The offset in the output of the file's first byte."""
    mark: bytes
    """The last bytes that were read: if they do not stand before the next ones, this is not the same file any more."""
    begun: float
    """When it started, as the clock that never jumps would have said."""
    heard: float
    """When it last said something, or when we began to listen."""
    redactor: Redactor
    folder: str = ""
    """The folder in which it gives its signal."""
    signalled_at: float | None = None
    """When a signal was first seen while the process lived."""
    behind: bool = False
    """Something has stirred that was not looked at to the end, because that failed: the next tick does it again."""
    ending: bool = False
    """It has given its signal, is to stop, or has gone: every tick looks at it until it is judged."""
    taken: dict[str, str] = field(default_factory=dict)
    """The agent's last commit that was taken in, by project."""
    moved: dict[str, str] = field(default_factory=dict)
    """Its commits that were not, yet."""

    def keep(self, content: bytes, lines: LineSplitter, now: float) -> None:
        """Remember what has been read."""
        self.offset += len(content)
        self.lines = lines
        self.mark = (self.mark + content)[-MARK:]
        self.heard = now

    def begin_anew(self) -> None:
        """Take the file's first byte as the next one of the output."""
        self.cut = self.offset
        self.lines = LineSplitter(odd=self.lines.odd | {CUT})
        self.mark = b""


class Intake:
    """Takes in output; rows and offset commit together, so that every byte is kept once."""

    def __init__(self, ports: Ports, confinement: Confinements) -> None:
        self.store = ports.store
        self.processes = ports.processes
        self.providers = ports.providers
        self.clock = ports.clock
        self.confinement = confinement

    async def resume(self, *runs: Run) -> dict[str, OutputPosition]:
        """The reading position of each of these runs, from the store; none for a run that lost its agent or project."""
        kept = await self.store.read(lambda store: _kept(store, runs))
        return {run.id: await self._tail(run, *kept[run.id]) for run in runs if run.id in kept}

    async def _tail(self, run: Run, offset: int, mark: bytes, site: Site) -> OutputPosition:
        start = max(run.cut, offset - LOOK_BACK)
        kept = await self.processes.output(run.id, start - run.cut, offset - start) if offset > start else b""
        now = self.clock.monotonic()
        return OutputPosition(
            run=run,
            offset=offset,
            lines=LineSplitter(kept.rpartition(b"\n")[2], odd=frozenset(run.odd)),
            site=site,
            cut=run.cut,
            mark=mark[max(0, len(mark) - offset + run.cut) :],
            begun=now - (await self.processes.age(run.identity) if run.identity else 0.0),
            heard=now,
            redactor=await self.confinement.redactor(run, site.project),
        )

    async def take(self, run: Run, tail: OutputPosition, *, steps: int = sys.maxsize, last: bool = False) -> bool:
        """Keep what was written since the last look: bytes, offset and what they tell, in one transaction each step.

        Says whether that was all. Some print faster than one can read: then there is no end to it.
        """
        provider = self.providers.get(run.provider)
        for _ in range(steps):
            content = await self._clean(run, tail, last=last)
            if not content:
                return True
            lines, readings = await _understood(tail.lines, provider, content)
            chunk = Chunk(run.id, tail.offset, self.clock.now(), content)
            told = LearnedOutput(run.id, provider, readings, lines.odd, tail.cut)
            await self.store.write(partial(_keep, chunk, told))
            tail.keep(content, lines, self.clock.monotonic())
        return False

    async def take_last(self, run: Run, tail: OutputPosition) -> Run:
        """All that is left, also a last line that no newline ended. Returns the run as it is known then."""
        await self.take(run, tail, last=True)
        odd = tail.lines.feed(b"\n")[0].odd
        provider = self.providers.get(run.provider)
        told = LearnedOutput(run.id, provider, provider.readings(tail.lines.end()), odd, tail.cut)
        known = await self.store.read(lambda store: store.find(Run, run.id))
        if known and not told.readings and (known.odd, known.cut) == (tuple(sorted(odd)), tail.cut):
            return known
        return await self.store.write(told.learn) or run

    async def _clean(self, run: Run, tail: OutputPosition, *, last: bool) -> bytes:
        """The next bytes without secrets, which must not stay in the file either.

        An end that may be the beginning of a secret is left until there is more, or nothing can come any more.
        """
        content = await self._next(run, tail)
        clean = tail.redactor.feed(content, last=last and len(content) < STEP)
        if not content.startswith(clean):
            await self.processes.overwrite(run.id, tail.offset - tail.cut, clean)
        return clean

    async def _next(self, run: Run, tail: OutputPosition) -> bytes:
        """The next bytes of the output. `> /dev/stderr` in a script empties the file: then those that it has now."""
        place = tail.offset - tail.cut - len(tail.mark)
        content = await self.processes.output(run.id, place, len(tail.mark) + STEP)
        same = content.startswith(tail.mark)
        if (not same or not tail.mark) and await self.processes.output_shared(run.id):
            tail.lines = replace(tail.lines, odd=tail.lines.odd | {FOREIGN})
            return b""
        if same:
            return content[len(tail.mark) :]
        tail.begin_anew()
        return await self.processes.output(run.id, 0, STEP)


@dataclass(frozen=True, slots=True)
class LearnedOutput:
    """What some of a run's output tells, to be written down."""

    run: str
    provider: Provider
    readings: Sequence[LineReading]
    odd: frozenset[str]
    cut: int

    def learn(self, store: Writing) -> Run | None:
        """Within a transaction: what the output tells about its run, and about itself."""
        run = store.find(Run, self.run)
        if run is None:
            return None
        learned = replace(run, odd=tuple(sorted(self.odd)), cut=self.cut)
        for reading in self.readings:
            learned = self._with(store, learned, reading)
        if learned != run:
            store.record("run.learned", run.id, learned)
        return learned

    def _with(self, store: StoreReading, run: Run, reading: LineReading) -> Run:
        known = replace(
            run,
            session=reading.session or run.session,
            model=reading.model or run.model,
            result=reading.result or run.result,
            trouble=_trouble(run, reading),
        )
        return replace(known, usage=self._usage(store, known, reading)) if reading.usage else known

    def _usage(self, store: StoreReading, run: Run, reading: LineReading) -> Usage:
        """The usage of this run by now: of a session's total, the part of earlier runs is taken away."""
        usage = reading.usage or Usage()
        if reading.total:
            before = [old for old in store.runs_of(run.agent) if old.number < run.number and old.session == run.session]
            calls, uses = run.usage.calls + usage.calls, run.usage.tool_uses + usage.tool_uses  # counted one by one
            usage = sum((replace(-old.usage, cost_usd=0.0) for old in before), usage)
            usage = replace(usage, calls=calls, tool_uses=uses)
        else:
            usage += run.usage
        return usage if usage.cost_usd else replace(usage, cost_usd=self.provider.price(run.model, usage))


async def _understood(
    lines: LineSplitter, provider: Provider, content: bytes
) -> tuple[LineSplitter, list[LineReading]]:
    """What is left over of some output, and what its whole lines tell: before the transaction, and much of it beside
    the loop."""

    def understand() -> tuple[LineSplitter, list[LineReading]]:
        rest, whole = lines.feed(content)
        return rest, provider.readings(whole)

    return understand() if len(content) <= LITTLE else await asyncio.to_thread(understand)


def _keep(chunk: Chunk, told: LearnedOutput, store: Writing) -> None:
    store.append(chunk)
    told.learn(store)


def _trouble(run: Run, reading: LineReading) -> RunTrouble | None:
    """The newest trouble; one is over when the program ends its turn without it. What we saw ourselves stays, and what
    a program says because we end it is none."""
    if was_halted(run) or run.stopping:
        return run.trouble
    new, old = reading.trouble, run.trouble
    if new and old and new.kind is old.kind and new.until is None:
        return replace(new, until=old.until)  # of several lines about one trouble, only one tells its end
    return new or (None if reading.ended else old)


def _end(store: StoreReading, run: str) -> tuple[int, bytes]:
    """The end of a run's stored output, and its last bytes."""
    end = store.output_end(run)
    if not end:
        return 0, b""
    last = b"".join(chunk.content for chunk in store.chunks(run, offset=max(0, end - MARK), limit=MARK))
    return end, last[-MARK:]


def _kept(store: StoreReading, runs: Sequence[Run]) -> dict[str, tuple[int, bytes, Site]]:
    """Of each run, where its kept output ends, the last bytes of that, and where it works; nothing if that is lost."""
    found: dict[str, tuple[int, bytes, Site]] = {}
    for run in runs:
        with suppress(NotFound):
            found[run.id] = (*_end(store, run.id), site_of(store, run.agent))
    return found
