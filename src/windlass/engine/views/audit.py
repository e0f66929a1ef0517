"""Check every promise on the real store, repositories and processes, without blocking anyone. Only damaged objects are
put back; nothing else is changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from windlass.core import invariants
from windlass.core.errors import WindlassError
from windlass.core.invariants import Finding, counted, finding
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Change, ChangeState
from windlass.core.nouns.event import Event
from windlass.core.nouns.message import Delivery, Message
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Chunk, Run
from windlass.core.nouns.task import Task, TaskState
from windlass.core.ports import Ports
from windlass.core.ports.archive import Proof, Saved
from windlass.core.ports.store import Reading
from windlass.engine.records.messages import current_task
from windlass.engine.views.hub_audit import HubAudit
from windlass.engine.views.project_audit import ProjectAudit

T = TypeVar("T")
R = TypeVar("R")

PAGE = 200
"""Rows that are read in one go; between pages everyone else has a turn."""
CHUNKS = 8
"""Pieces of output, of up to a megabyte each, that are read in one go."""
SHORT, MANY_CHUNKS = 64_000, 1000
"""Output of at most so many bytes and pieces is read together with its run, because most runs say little."""
PROOFS = 1000
"""Landings that are proven together, so that git is asked about the whole repository once for all of them."""
LOOK_EVERY = 0.5
"""Seconds between two looks at a run that seems wrong and may just be ending."""
LEAST_PATIENCE = 3.0

Rivals = Callable[[], Sequence[str]]
"""Gives the reasons why another daemon may work on this home, now or soon."""


@dataclass(slots=True)
class JournalFacts:
    """Facts that only the journal has."""

    output: dict[str, int] = field(default_factory=dict)
    """How many bytes of output each run has, by the journal."""
    rescues: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """The projects and refs that removals have named, by agent; no project means the agent's own."""
    done: set[str] = field(default_factory=set)
    undone: list[str] = field(default_factory=list)
    """Sentences about tasks that left the state done."""
    seq: int = 0
    """The number of the last event that was read."""

    def hear(self, event: Event) -> None:
        if event.kind == "run.output":
            self.output[event.data["run"]] = event.data["offset"] + event.data["length"]
        elif event.kind in ("agent.retired", "agent.renewed") and event.data.get("rescue"):
            saved = event.data.get("rescues") or {"": event.data["rescue"]}
            self.rescues.setdefault(event.subject, []).extend(saved.items())
        for became in event.became:
            if became["noun"] == "task":
                self._hear_task(became["id"], became["state"], event.seq)
        self.seq = event.seq

    def _hear_task(self, task: str, state: str, seq: int) -> None:
        if state == TaskState.DONE:
            self.done.add(task)
        elif task in self.done:
            self.undone.append(f"{task} was done, and became {state} with event {seq}")


@dataclass(frozen=True, slots=True)
class KeptOutput:
    """How much of a run's output is kept."""

    run: str
    end: int
    live: bool
    more: bool
    """Its file has more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """An agent, and the work that it may still have."""

    agent: Agent
    projects: Mapping[str, Project | None]
    """The projects in which it may have a worktree, by id; None for one that the store does not have."""
    at_risk: bool
    """It has work that has not landed."""
    told_lost: bool
    """Someone removed its worktree, and the outcome of its run says so."""
    given_up: bool
    """A person deleted the hub that kept its work."""


class Audit:
    """Checks every promise."""

    def __init__(self, ports: Ports, *, pause: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self.store = ports.store
        self.git = ports.git
        self.hubs = HubAudit(ports)
        self.projects = ProjectAudit(ports)
        self.processes = ports.processes
        self.settings = ports.settings
        self.pause = pause

    async def findings(self, rivals: Rivals) -> AsyncIterator[Finding]:
        """One finding for each promise, in order, each as soon as it is known."""
        told = JournalFacts()
        looks: dict[str, Callable[[], Awaitable[Sequence[Finding]]]] = {
            "I1": self._landings,
            "I4": self._messages,
            "I5": partial(self._output, told),
            "I6": self._owners,
            "I7": partial(self._needs, told),
            "I8": partial(_daemons, rivals),
            "I9": self._living,
            "I10": partial(self._work, told),
            "I11": _errors,
            "I12": self._sound,
            "I13": self.hubs.findings,
            "I15": self.projects.findings,
        }
        for key, look in looks.items():
            try:
                found = await look()
            except Exception as error:  # noqa: BLE001 - one damaged row must not hide what else there is to see
                found = [_unseen(key, error)]
            for promise in found:
                yield promise

    # ── landed changes ──

    async def _landings(self) -> list[Finding]:
        trees: list[str] = []
        history: list[str] = []
        notes: list[str] = []
        differences: list[str] = []
        count = 0
        async for change, proof in self._proofs():
            count += 1
            trees.append(invariants.judge_tree(change, proof))
            if landing := change.landing:
                history.append(invariants.judge_history(change, landing, proof))
                notes.append(invariants.note_history(change, landing, proof))
                differences.append(invariants.judge_difference(change, landing, proof))
        seen = counted(count, "landing")
        return [
            finding("I1", seen, filter(None, trees)),
            finding("I2", seen, filter(None, history), filter(None, notes)),
            finding("I3", seen, filter(None, differences)),
        ]

    async def _proofs(self) -> AsyncIterator[tuple[Change, Proof]]:
        """Each landed change with what git says of it."""
        waiting: dict[str, list[Change]] = {}
        projects = {each.id: each for each in await self.store.read(lambda store: store.projects(forgotten=True))}
        async for change in self._walk(Change, lambda _, change: change):
            if change.state is not ChangeState.LANDED or change.project not in projects:
                continue
            if change.landing and change.landing.landed_at <= (projects[change.project].hub_deleted_at or 0.0):
                continue  # a person deleted the proof
            queue = waiting.setdefault(change.project, [])
            queue.append(change)
            if len(queue) >= PROOFS:
                for proof in await self._prove(projects[change.project], waiting.pop(change.project)):
                    yield proof
        for project, queue in waiting.items():
            for proof in await self._prove(projects[project], queue):
                yield proof

    async def _prove(self, project: Project, landed: list[Change]) -> list[tuple[Change, Proof]]:
        return list(zip(landed, await self.git.archive.proofs(project, landed), strict=True))

    # ── messages ──

    async def _messages(self) -> list[Finding]:
        problems: list[str] = []
        count = 0
        async for lost in self._walk(Message, _readers):
            count += 1
            problems += lost
        seen: set[str] = set()
        async for problem in self._walk(Delivery, partial(_delivery, seen)):
            problems += filter(None, [problem])
        what = f"{counted(count, 'message')}, {counted(len(seen), 'delivery', 'deliveries')}"
        return [finding("I4", what, problems)]

    # ── output ──

    async def _output(self, told: JournalFacts) -> list[Finding]:
        """Read the kept output first and the journal second: a live run may then only have more in the journal."""
        problems: list[str] = []
        kept: list[KeptOutput] = []
        async for run, length, first in self._walk(Run, _beginning):
            end, problem = await self._kept(run, length, first)
            if problem:
                problems.append(problem)
            else:
                more = not run.live and bool(await self.processes.output(run.id, end - run.cut, 1))
                kept.append(KeptOutput(run.id, end, run.live, more=more))
        await self._hear(told)
        for output in kept:
            heard = told.output.get(output.run, 0)
            problems.append(invariants.judge_output(output.run, output.end, heard, live=output.live, more=output.more))
        seen = f"{counted(sum(output.end for output in kept), 'byte')} of {counted(len(kept), 'run')}"
        return [finding("I5", seen, filter(None, problems))]

    async def _kept(self, run: Run, expected: int, chunks: list[Chunk]) -> tuple[int, str]:
        """How many bytes of a run's output are kept, beginning with these chunks; and what is wrong with them."""
        end = 0
        has_file = bool(await self.processes.output(run.id, 0, 1))
        while chunks:
            for chunk in chunks:
                at = chunk.offset - run.cut  # negative: the file was emptied or replaced since
                there = await self.processes.output(run.id, at, len(chunk.content)) if has_file and at >= 0 else None
                if problem := invariants.judge_chunk(chunk, end, there):
                    return end, problem
                end = chunk.end
            chunks = await self.store.read(partial(_chunks, run.id, end)) if end < expected else []
        return end, ""

    async def _hear(self, told: JournalFacts) -> None:
        """Read the journal on, from the last event that was read."""
        while events := await self.store.read(lambda store: store.events(after=told.seq, limit=PAGE)):
            for event in events:
                told.hear(event)

    # ── owners and needs ──

    async def _owners(self) -> list[Finding]:
        live = await self.store.read(lambda store: store.live_runs())
        return [finding("I6", counted(len(live), "live run"), invariants.judge_owners(live))]

    async def _needs(self, told: JournalFacts) -> list[Finding]:
        await self._hear(told)
        tasks = [each async for each in self._walk(Task, _undone)]
        problems = [problem for task in tasks for problem in task]
        return [finding("I7", counted(len(tasks), "task"), [*problems, *told.undone])]

    # ── processes ──

    async def _living(self) -> list[Finding]:
        """Look several times at a run that seems wrong: one that has just ended is judged within moments."""
        problems, count = await self._strange()
        patience = LEAST_PATIENCE + 2 * self.settings.at("").daemon.stop_grace_seconds
        while problems and patience > 0:
            await self.pause(LOOK_EVERY)
            patience -= LOOK_EVERY
            again, count = await self._strange()
            problems = {key: words for key, words in again.items() if key in problems}
        return [finding("I9", counted(count, "live run"), problems.values())]

    async def _strange(self) -> tuple[dict[object, str], int]:
        """Sentences about live runs without a process and processes without a live run; and the number of live runs."""
        live = {each.id: each for each in await self.store.read(lambda store: store.live_runs())}
        alive = await self.processes.alive(*(run.identity for run in live.values() if run.identity))
        found: dict[object, str] = {}
        for run in live.values():
            if run.identity and run.identity not in alive:
                found[run.id, run.identity] = (
                    f"{run.id} of {run.agent} counts as running; pid {run.identity.pid} is gone"
                )
        strays = await self.processes.strays(live.keys())  # a run that has just begun is no problem at the next look
        return found | {pid: f"pid {pid} was started by a run that is over" for pid in strays}, len(live)

    # ── work ──

    async def _work(self, told: JournalFacts) -> list[Finding]:
        """Look for worktrees first and for saved work second: work is saved before its worktree is removed."""
        await self._hear(told)
        every = [each async for each in self._walk(Agent, _holding)]
        holdings = {each.agent.id: each for each in every if not each.given_up}
        gone = [(key, agent) for agent, each in holdings.items() if each.at_risk for key in await self._gone(each)]
        saved = await self._saved()
        held = {(project, each.agent) for project, found in saved.items() for each in found.values() if each.sound}
        lost = dict.fromkeys(agent for project, agent in gone if (project, agent) not in held)
        problems = [f"{key}: its worktree is gone, and it is not saved" for key in lost if not holdings[key].told_lost]
        notes = [f"{key}: its worktree was taken away while it ran" for key in lost if holdings[key].told_lost]
        rescues = [(agent, *ref) for agent, refs in told.rescues.items() for ref in refs if agent in holdings]
        problems += [
            invariants.judge_rescue(agent, ref, saved.get(project or holdings[agent].agent.project, {}))
            for agent, project, ref in rescues
        ]
        seen = f"{counted(len(holdings), 'agent')}, {counted(len(rescues), 'removed worktree')}"
        return [finding("I10", seen, filter(None, problems), notes)]

    async def _gone(self, holding: Holding) -> list[str]:
        """The projects in which an agent has no worktree."""
        known, agent = holding.projects.items(), holding.agent
        return [key for key, project in known if project is None or not await self.git.has_worktree(project, agent)]

    async def _saved(self) -> dict[str, dict[str, Saved]]:
        projects = await self.store.read(lambda store: store.projects(forgotten=True))
        return {
            project.id: {saved.ref: saved for saved in await self.git.archive.saved(project)} for project in projects
        }

    # ── the store ──

    async def _sound(self) -> list[Finding]:
        problem = await self.store.verify()
        last = await self.store.read(lambda store: store.last_seq())
        seen = f"{counted(last, 'event')}, each chained to the one before, and every row as they say"
        return [finding("I12", seen, [problem] if problem else ())]

    async def _walk(self, kind: type[T], look: Callable[[Reading, T], R]) -> AsyncIterator[R]:
        """Look at every noun of a kind, a page in each transaction."""
        after = 0
        while page := await self.store.read(partial(_page, kind, look, after)):
            for _, answer in page:
                yield answer
            after = page[-1][0]


async def _daemons(rivals: Rivals) -> list[Finding]:
    return [finding("I8", "this one holds the lock of its home", await asyncio.to_thread(rivals))]


async def _errors() -> list[Finding]:
    return [finding("I11", "checked by tests: each error names what it is about, why, and the next command")]


def _unseen(key: str, error: Exception) -> Finding:
    """A promise that can't be checked counts as broken. I1 stands for I1 to I3, I13 also for I14: one look for all."""
    known = isinstance(error, WindlassError)
    detail = f"could not be looked at: {error if known else repr(error)}"
    title, hint = invariants.PROMISES[key]
    return Finding(name=f"{key} {title}", ok=False, detail=detail, hint=getattr(error, "hint", "") or hint)


def _page(kind: type[T], look: Callable[[Reading, T], R], after: int, store: Reading) -> list[tuple[int, R]]:
    return [(place, look(store, each)) for place, each in store.page(kind, after=after, limit=PAGE)]


def _holding(store: Reading, agent: Agent) -> Holding:
    runs = store.runs_of(agent.id)
    task = current_task(store, agent.id)
    change = store.change_of_task(task.id) if task else None
    newest = store.task_of(agent.id)
    begun = newest is not None and any(run.identity is not None for run in runs if run.task == newest.id)
    # A further repository of a task has no worktree before the first run of that task begins.
    projects = agent.projects if begun else (agent.project,)
    return Holding(
        agent=agent,
        projects={project: store.find(Project, project) for project in projects},
        at_risk=invariants.has_work(runs, change),
        told_lost=invariants.was_told_lost(runs),
        given_up=invariants.was_given_up(agent, store.find(Project, agent.project)),
    )


def _readers(store: Reading, message: Message) -> list[str]:
    """The readers of a message that have no delivery, as sentences."""
    held = [each for each in message.to if store.find(Delivery, Delivery(message=message.id, reader=each).id)]
    return invariants.judge_message(message, held)


def _delivery(seen: set[str], store: Reading, delivery: Delivery) -> str:
    twice = delivery.id in seen
    seen.add(delivery.id)
    return invariants.judge_delivery(
        delivery,
        store.find(Message, delivery.message),
        store.find(Run, delivery.run) if delivery.run else None,
        known=delivery.reader in invariants.NOT_AGENTS or store.find(Agent, delivery.reader) is not None,
        twice=twice,
    )


def _undone(store: Reading, task: Task) -> list[str]:
    return invariants.judge_needs(task, {need: store.find(Task, need) for need in task.needs})


def _beginning(store: Reading, run: Run) -> tuple[Run, int, list[Chunk]]:
    """A run, the length of its output, and the first chunks: all of them, if the output is short."""
    end = store.output_end(run.id)
    return run, end, store.chunks(run.id, limit=MANY_CHUNKS if end <= SHORT else 1) if end else []


def _chunks(run: str, offset: int, store: Reading) -> list[Chunk]:
    return store.chunks(run, offset=offset, limit=CHUNKS)
