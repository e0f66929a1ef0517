"""Stand-ins that watch: each act on the world is held against the promises at the moment it happens."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable
from dataclasses import replace

from fakes import FakeChecks, FakeGit, FakeProcesses
from fakes.objects import Files
from fakes.store import MemoryReading
from windlass.core.errors import Unavailable
from windlass.core.gate.reviews import open_blocking
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Candidate, Change, ChangeState, CheckResult, Hold
from windlass.core.nouns.message import Kind, Message
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Identity, Run
from windlass.core.nouns.task import TaskState
from windlass.core.ports.processes import Launch
from windlass.core.runs.sandbox import Sandbox
from windlass.core.settings.schema import CheckSettings
from windlass.engine.gate.comments import said_about

_LANDS = re.compile(r"Land (c\d+): ")


class Broken(AssertionError):
    """A promise was not kept."""


class Witness:
    """Remembers every broken promise, also one that was seen where an error would be swallowed."""

    def __init__(self, store: MemoryReading) -> None:
        self.store = store
        self.broken: list[str] = []
        self.passed: set[str] = set()
        """Trees that checks have passed on."""
        self.fair: set[str] = set()
        """Trees that were tested on top of something green."""
        self.accepted: list[str] = []
        """Tasks that were taken."""
        self.answers: dict[str, str] = {}
        """Messages that were taken, each with its reader."""
        self.spoken: dict[str, Message] = {}
        """What was said and accepted."""
        self.heard: list[tuple[str, str]] = []
        """What readers took for themselves: the message, and who."""
        self.most = 0
        """The largest number of runs that was ever allowed."""
        self.spawned = 0
        self.landed: list[tuple[str, str]] = []
        """Where the gate has moved which main to."""

    def object(self, words: str) -> None:
        self.broken.append(words)

    def ask(self) -> None:
        """Raise the first broken promise, if there is one."""
        if self.broken:
            raise Broken(self.broken[0])


class WatchedProcesses(FakeProcesses):
    """No second process for a run, a worktree or an agent; none without an intent that was written down."""

    def __init__(self, witness: Witness, *, monotonic: Callable[[], float]) -> None:
        super().__init__(monotonic=monotonic)
        self.witness = witness

    async def start(self, launch: Launch, /) -> Identity:
        for run, each in self.started.items():
            if each.alive and each.launch.cwd == launch.cwd:
                self.witness.object(f"I9: {launch.run} was started in {launch.cwd}, where {run} lives")
        lent = self._lent(launch.run)
        living = sum(each.alive and run not in lent for run, each in self.started.items())
        if living >= self.witness.most:
            self.witness.object(f"limits: {launch.run} was started beside {living} others")
        known = self.witness.store.find(Run, launch.run)
        if known is None or not known.live:
            self.witness.object(f"I9: {launch.run} was started, and is not to live: {known}")
        self.witness.spawned += 1
        return await super().start(launch)

    def _lent(self, starting: str) -> set[str]:
        """Those that have asked someone, if the one that starts was asked by one of them: they wait for answers.

        The answer may have come since the slot was given."""
        store = self.witness.store
        asks = [each for project in store.projects() for each in store.said(project.id, limit=10_000)]
        asks = [ask for ask in asks if ask.kind is Kind.ASK and "human" not in ask.to]
        live = {run.agent: run for run in store.live_runs()}
        asking = [ask for ask in asks if ask.sender in live and ask.sent_at >= live[ask.sender].starting_at]
        begun = store.find(Run, starting)
        asked = any(begun and begun.agent in each.to for each in asking)
        return {live[each.sender].id for each in asking} if asked else set()

    def deaf(self) -> None:
        """Whoever followed is dead."""
        self._stirs.clear()


class WatchedGit(FakeGit):
    """Main moves forward from its tip, to a tree that passed, by the change's own difference; saved is what goes."""

    witness: Witness

    def _move(self, project: Project, candidate: Candidate) -> None:
        user = self.repositories[project.path]
        before = user.branches[project.main]
        self._refused(project, self._steps(before, candidate.commit))
        super()._move(project, candidate)
        after = user.branches[project.main]
        steps = self._steps(before, after)
        if not steps:
            self.witness.object(f"I2: main moved from {before[:8]} to {after[:8]}, which does not stand on it")
        if self.objects.tree(after) not in self.witness.passed:
            self.witness.object(f"I1: main moved to {after[:8]}, whose tree no check has passed on")
        for step in steps:
            parents = self.objects.commits[step].parents
            if len(parents) != 2 or self._expected(*parents) != self.objects.files(step):
                self.witness.object(f"I3: main moved to {step[:8]}, which is not the change's own difference")
            self.witness.landed.append((project.path, step))

    def _steps(self, before: str, after: str) -> list[str]:
        """The commits that main went through, one for each change; none if they do not begin where it was."""
        steps, at = [], after
        while at != before:
            parents = self.objects.commits[at].parents
            if not parents:
                return []
            steps.append(at)
            at = parents[0]
        return steps[::-1]

    def _refused(self, project: Project, steps: list[str]) -> None:
        """What a person has paused, held or dropped, and what a comment blocks, is not landed after that was said."""
        store = self.witness.store
        now = store.find(Project, project.id)
        if now and now.paused:
            self.witness.object(f"line: main of {project.path} moves, although it is paused")
        for change in filter(None, map(self._change, steps)):
            if change.hold in (Hold.HUMAN, Hold.REVIEW) or change.state is ChangeState.CLOSED:
                self.witness.object(f"line: {change.id} lands, although it is {change.state}: {change.reason}")
            if blocking := open_blocking(said_about(store, change.id)):
                self.witness.object(f"line: {change.id} lands, although {blocking[0].id} blocks it")

    def _change(self, step: str) -> Change | None:
        """The change that a commit of ours says it lands."""
        found = _LANDS.match(self.objects.commits[step].message)
        return self.witness.store.find(Change, found[1]) if found else None

    def _expected(self, main: str, head: str) -> Files:
        """Main with the files that the branch has changed since they parted."""
        base, ours = self.objects.files(self.objects.base(main, head)), dict(self.objects.files(main))
        theirs = self.objects.files(head)
        for name in base.keys() | theirs.keys():
            if base.get(name) != theirs.get(name):
                ours.pop(name, None)
                ours |= {name: theirs[name]} if name in theirs else {}
        return ours

    async def remove_worktree(self, project: Project, agent: Agent, /) -> str:
        task = self.witness.store.task_of(agent.id)
        if task is None or task.state is not TaskState.DONE:
            self.witness.object(f"I10: the worktree of {agent.id} is removed, and its task is not done")
        return await super().remove_worktree(project, agent)


class WatchedChecks(FakeChecks):
    """Takes its time, flakes and fails as it is told; what passed is remembered beside the store."""

    def __init__(self, git: FakeGit, witness: Witness, chance: random.Random) -> None:
        super().__init__(git, {"check": judge})
        self.witness = witness
        self.chance = chance
        self.flakes = 0
        self.calm = False

    async def run(
        self,
        project: Project,
        candidate: Candidate,
        settings: CheckSettings,
        started_at: float,
        /,
        *,
        sandbox: Sandbox | None,
    ) -> tuple[CheckResult, str]:
        if not self.calm:
            await asyncio.sleep(self.chance.choice((0, 0, 0.5, 3)))
        result, output = await super().run(project, candidate, settings, started_at, sandbox=sandbox)
        if not judge(self.git.objects.files(candidate.before))[0]:
            self.witness.fair.add(result.tree)
        if self.flakes > 0:
            self.flakes -= 1
            if self.flakes % 2:
                raise Unavailable("The machine has no room for checks.")
            return replace(result, passed=False, exit_code=9, reason="flaked"), "flaked\n"
        if result.passed:
            self.witness.passed.add(result.tree)
        return result, output


def judge(files: Files) -> tuple[int | None, str]:
    """Red where something is bad, or where two things are odd together."""
    bad = sorted(name for name, text in files.items() if "bad" in text)
    odd = sorted(name for name, text in files.items() if "odd" in text)
    if bad:
        return 1, f"bad: {', '.join(bad)}\n"
    return (2, f"odd together: {', '.join(odd)}\n") if len(odd) > 1 else (0, "fine\n")
