"""When a workflow is over: no order of words, commits, ends and deaths lets it leave with work undone, or never."""

from __future__ import annotations

import asyncio
import itertools
import random
from typing import Any

import pytest
from stage import SetClock, SetSettings

from fakes import FakeChats, FakeChecks, FakeGit, FakeLibrary, FakeProcesses, FakeSetups, FakeWorkdirs
from fakes.store import MemoryStore
from windlass.core.errors import WindlassError
from windlass.core.files.template import parse
from windlass.core.messages.members import Speaker
from windlass.core.messages.new_message import NewMessage
from windlass.core.nouns.agent import Permissions
from windlass.core.nouns.run import Run
from windlass.core.ports import Ports
from windlass.core.runs.provider import DoneSign, Provider
from windlass.core.settings.schema import CheckSettings, Limits, Settings
from windlass.core.workflows.instance import Instance, InstanceEnding, Motion
from windlass.core.workflows.workflow import Context, Member, Workflow, WorkflowTask, WorktreeChoice
from windlass.engine import Engine
from windlass.engine.waking.deliver import mail_of
from windlass.engine.workflows.start import WorkflowStart
from windlass.providers import FoundProviders

HOME, REPO, FILE = "/quiet/home", "/quiet/repo", "/quiet/flow.yaml"
NAMES = ("ann", "bob", "cat")
ENDS = {"exit": 50, "crash": 25, "say": 50, "commit": 30, "restart": 10, "time": 20, "person": 10, "drain": 2}
"""What happens next, and how likely it is."""
HISTORIES = 120
STEPS = 25


class QuietStage:
    """A workflow of three, in memory."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.clock = SetClock()
        self.store = MemoryStore(self.clock)
        self.git = FakeGit(HOME, now=self.clock.now)
        self.git.repository(REPO, {"a": "one\n"})
        self.processes = FakeProcesses(monotonic=self.clock.monotonic)
        self.numbers = itertools.count(1)
        limits = Limits(returns=2, retries=1, hops=10_000, wakes=10_000)
        self.settings = SetSettings(Settings(checks=CheckSettings(command="check"), limits=limits))
        self.library = FakeLibrary()
        self.library.workflows[FILE] = self.workflow()
        plain = Provider(name="plain", summary="ends", argv=lambda _: ("plain",), claim=DoneSign.SIGNAL, reads=True)
        self.providers = FoundProviders({"plain": plain})
        self.engine = self.build()
        self.drained_at: int | None = None
        """How many runs there were when nobody was to be started any more."""

    def workflow(self) -> Workflow:
        folder, _ = parse("context/${{ instance }}/")
        kickoff, _ = parse(self.chance.choice(("@ann begin.", "@ann @bob begin.")))
        brief, _ = parse("Do it.")
        first = WorkflowTask(name="first", title="First", brief=brief, agent=self.chance.choice(NAMES))
        then = WorkflowTask(name="then", title="Then", brief=brief, agent=self.chance.choice(NAMES), needs=("first",))
        last = WorkflowTask(name="last", title="Last", brief=brief, agent=self.chance.choice(NAMES), needs=("then",))
        return Workflow(
            name="quiet",
            file=FILE,
            agents=tuple(
                Member(
                    name=name,
                    provider="plain",
                    system_prompt="Do it.",
                    permissions=self.chance.choice((Permissions.EDIT, Permissions.EDIT, Permissions.READ)),
                    worktree=self.chance.choice((WorktreeChoice.SHARED, WorktreeChoice.SHARED, WorktreeChoice.OWN)),
                )
                for name in NAMES
            ),
            kickoff=kickoff,
            tasks=self.chance.choice(((), (), (first,), (first, then, last))),
            context=Context(folder=folder, channel="channel.md", document="notes.md"),
            gate=self.chance.random() < 0.7,
        )

    def build(self) -> Engine:
        return Engine(
            Ports(
                store=self.store,
                git=self.git,
                processes=self.processes,
                workdirs=FakeWorkdirs(HOME, exists=self.git.worktrees.__contains__),
                chats=FakeChats(),
                checks=FakeChecks(self.git, {"check": lambda _: (0, "")}),
                providers=self.providers,
                settings=self.settings,
                clock=self.clock,
                random=random.Random(7).random,
                uuid=lambda: f"project-{next(self.numbers)}",
                library=self.library,
                setups=FakeSetups(),
                home=HOME,
            )
        )

    async def begin(self) -> None:
        await self.engine.workflows.begin(WorkflowStart(path=REPO, file=FILE))

    async def move(self) -> None:
        """Let every tick run until nothing changes any more."""
        seq = -1
        while seq != (seq := await self.store.read(lambda store: store.last_seq())):
            ticks = [*self.engine.ticks.values()]
            self.chance.shuffle(ticks)
            for tick in ticks:
                await tick.tick()
                await self._asks_nobody()
                await self.engine.settle()
        assert [str(each) for each in self.engine.troubles.all()] == []

    async def live(self) -> list[Run]:
        return await self.store.read(lambda store: store.live_runs())

    async def act(self, what: str) -> None:
        """One thing happens, to one of those who run."""
        live = [each for each in await self.live() if each.identity is not None]
        run = self.chance.choice(live) if live else None
        match what:
            case "exit" | "crash" if run:
                self.processes.exit(run.id, 0 if what == "exit" else 1)
            case "say" if run:
                await self._say(run)
            case "commit" if run:
                await self._commit(run)
            case "restart":
                await self.engine.close()
                self.engine = self.build()
            case "person" if not await self._over():
                await self._send(Speaker("human"), NewMessage(body="Go on.", project="project-1", to=("bob@default",)))
            case "drain" if not await self._over():
                await self.engine.workflows.drain(REPO, "default")
                self.drained_at = len(self.processes.started)
            case "time":
                self.clock.time += self.chance.choice((1.0, 90.0))

    async def _say(self, run: Run) -> None:
        others = [name for name in NAMES if not run.agent.startswith(name)]
        named = " ".join(f"@{each}" for each in self.chance.sample(others, self.chance.randint(1, 2)))
        await self._send(
            Speaker(run.agent, "project-1", run.id), NewMessage(body=f"{named} please", project="project-1")
        )

    async def _send(self, speaker: Speaker, post: NewMessage) -> None:
        try:
            await self.engine.talk.send(speaker, post)
        except WindlassError:
            return  # its run is over, or nobody is left to hear it

    async def _commit(self, run: Run) -> None:
        tree = self.git.worktrees.get(self.processes.started[run.id].launch.cwd)
        if tree is not None:
            tree.commit({f"file-{next(self.numbers)}": "new\n"})

    async def instance(self) -> Instance:
        found = await self.store.read(lambda store: store.find(Instance, "project-1/default"))
        assert found is not None
        return found

    async def _over(self) -> bool:
        return not (await self.instance()).live

    async def check(self) -> None:
        """If it is over, nothing is left that could move; if nothing is left, it is over."""
        instance = await self.instance()
        look = await self.engine.workflows.look(REPO, "default")
        undone = await self._undone(instance)
        if self.drained_at is not None:
            assert len(self.processes.started) == self.drained_at, "somebody was started"
        if not instance.live:
            assert undone == []
            assert instance.ending is (InstanceEnding.DONE if self.drained_at is None else InstanceEnding.DRAINED)
        if not instance.live and self.drained_at is None:
            assert [each for name in instance.agents for each in await self._untold(name)] == []
        elif look.motion is Motion.QUIET:
            assert not undone or instance.heads
        if not undone:
            assert not instance.live, f"nothing is left to do, and it goes on: {look}"

    async def _asks_nobody(self) -> None:
        """At no moment does it seem to wait for a person: nobody was asked anything."""
        look = await self.engine.workflows.look(REPO, "default")
        assert look.motion is not Motion.WAITING, f"it waits for nothing: {look}"

    async def _untold(self, name: str) -> list[Any]:
        """What was said to one and reached no run of its; whether it still is to wake it or not."""
        return await self.store.read(lambda store: store.undelivered(reader=name))

    async def _undone(self, instance: Instance) -> list[Any]:
        """By the rows alone, and not by the rule that we test."""

        def question(store: Any) -> list[Any]:
            tasks = [task for task in store.unfinished_tasks() if task.agent in instance.agents]
            runs = [run for run in store.live_runs() if run.agent in instance.agents]
            readers = [each for each in store.readers_waiting() if each in instance.agents]
            mail = [mail_of(store, reader, store.undelivered(reader=reader)) for reader in readers]
            now = self.clock.now()
            due = [each for each in mail if each and self._wakes(self.engine._deliver.decide(each, now))]
            return [*tasks, *runs, *due]

        return await self.store.read(question)

    @staticmethod
    def _wakes(decision: Any) -> bool:
        return type(decision).__name__ == "Wake" or getattr(decision, "until", None) is not None


async def play(seed: int) -> None:
    chance = random.Random(seed)
    stage = QuietStage(chance)
    await stage.begin()
    await stage.move()
    for _ in range(STEPS):
        await stage.act(chance.choices([*ENDS], [*ENDS.values()])[0])
        if chance.random() < 0.7:
            await stage.move()
            await stage.check()
    for _ in range(200):  # from now on everyone only ends what it is at
        await stage.move()
        await stage.check()
        if await stage._over():
            break
        for run in await stage.live():
            stage.processes.exit(run.id, 0)
        stage.clock.time += 90.0
    assert await stage._over(), "it never ends"
    await stage.engine.close()


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_it_is_over_exactly_when_nothing_is_left(seed: int) -> None:
    """In any order, also with a daemon that dies in between."""
    asyncio.run(play(seed))
