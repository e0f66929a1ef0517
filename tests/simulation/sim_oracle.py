"""What must be true: after every act, when everything is left alone, and when all has come to its end."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sim_agents import own_branch
from sim_draws import DONE
from sim_losses import BY_HAND, Losses
from sim_stands import CHECK, PROVIDERS
from sim_watch import judge
from sim_world import Place, World

from fakes.repository import FakeRepository
from windlass.core import invariants, policy
from windlass.core.gate import reviews
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Change, ChangeState, Hold
from windlass.core.nouns.event import Event
from windlass.core.nouns.message import Delivery, Message
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Run
from windlass.core.nouns.task import Task, TaskState
from windlass.engine import Engine
from windlass.engine.gate.comments import said_about
from windlass.engine.slots import Slots
from windlass.engine.views.audit import Audit, JournalFacts
from windlass.engine.waking.deliver import Mail, waiting
from windlass.engine.waking.dispatch import _ready

QUIET, HELD_QUIET, SLOWEST_TICK = 8.5, 16.0, 31.0
"""Seconds in which something happens if anything will; held changes are looked at more rarely."""
ROUNDS = 40


class Oracle:
    """Listens to the journal, and looks at what it tells of."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.told = JournalFacts()

    # ── after every act ──

    def check(self) -> None:
        """Hold what has happened since the last time against the promises."""
        world = self.world
        for event in world.store._tables.events[self.told.seq :]:
            self.told.hear(event)
            self._judge(event)
        self._owners()
        world.witness.ask()

    def _judge(self, event: Event) -> None:
        for became in event.became:
            noun, key = became["noun"], became.get("id", "")
            if noun == "run" and (run := self.world.now.find(Run, key)) and not run.live:
                self._ended(run)
            elif noun == "delivery":
                self._delivery(f"{became['message']}/{became['reader']}")
            elif noun == "task" and (task := self.world.now.find(Task, key)):
                needs = {need: self.world.now.find(Task, need) for need in task.needs}
                self._object("I7", invariants.judge_needs(task, needs))
            elif noun == "change" and event.kind == "change.rejected" and (change := self.world.now.find(Change, key)):
                self._blamed(change)
        self._object("I7", self.told.undone)

    def _owners(self) -> None:
        world = self.world
        self._object("I6", invariants.judge_owners(world.now.live_runs()))
        for process in world.living():
            run = world.now.find(Run, process.launch.run)
            if run is None or not run.live:
                self._object("I9", [f"{process.launch.run} lives, and its run has ended"])

    def _ended(self, run: Run) -> None:
        process = self.world.processes.started.get(run.id)
        there = len(process.output) if process else 0
        kept, told = self.world.now.output_end(run.id), self.told.output.get(run.id, 0)
        problem = invariants.judge_output(run.id, kept, kept if told < kept else told, live=False, more=there > kept)
        self._object("I5", [problem])

    def _delivery(self, key: str) -> None:
        now = self.world.now
        delivery = now.find(Delivery, key)
        if delivery is not None:
            run = now.find(Run, delivery.run) if delivery.run else None
            known = delivery.reader in invariants.NOT_AGENTS or now.find(Agent, delivery.reader) is not None
            message = now.find(Message, delivery.message)
            self._object("I4", [invariants.judge_delivery(delivery, message, run, known=known, twice=False)])

    def _blamed(self, change: Change) -> None:
        """A change that failed only on a red main does not go back for it; the one that is to mend main may."""
        project = self.world.now.find(Project, change.project)
        alone = [check for check in change.checks if not check.passed and check.stack == (change.id,)]
        mends = project is None or change.title == project.mending
        if alone and change.reason == alone[-1].reason and not mends:
            fair = any(each.tree in self.world.witness.fair for each in alone)
            self._object("red", [] if fair else [f"{change.id} goes back to its author, and failed on a red main only"])

    def _object(self, key: str, problems: list[str]) -> None:
        for problem in filter(None, problems):
            self.world.witness.object(f"{key}: {problem}")

    # ── left alone ──

    def rest(self) -> None:
        """With nobody doing anything, everything comes to rest, and whatever waits has a reason to."""
        world = self.world
        world.strain.calm = world.checks.calm = world.setups.calm = True
        world.strain.fuse, world.strain.target = None, ""
        world.strain.refusals.clear()
        world.checks.flakes = world.setups.failures = 0
        if world.life is None:
            world.boot()
        world.wait(SLOWEST_TICK)  # settings that have changed are noticed by then
        self._quiet()
        self._object("rest", list(self._restless()))
        world.witness.ask()

    def _quiet(self) -> None:
        for _ in range(ROUNDS):
            seq = self.world.now.last_seq()
            self.world.wait(HELD_QUIET if self.world.now.changes() else QUIET)
            self.world.wait(0.001)  # what began at that very moment is over, too
            self.check()
            if seq == self.world.now.last_seq() and not self.world.calls and not self._paused():
                return
        self.world.witness.object(f"rest: it never comes to rest: {self._newest()}")
        self.world.witness.ask()

    def _paused(self) -> bool:
        """Something that failed is being left for a while before it is tried again."""
        engine = self.world.engine
        return engine is not None and any(
            each._tasks for each in (engine._starts, engine._attendants, engine._landings, engine._tests)
        )

    def _newest(self) -> list[str]:
        return [f"{event.kind} {event.subject}" for event in self.world.store._tables.events[-8:]]

    def _restless(self) -> Iterator[str]:
        now = self.world.now
        for run in now.live_runs():
            if run.identity is None or not self.world.processes.lives(run.identity):
                yield f"{run.id} of {run.agent} is not running: {run.reason}"
            elif run.stopping or run.said:
                yield f"{run.id} of {run.agent} should be over"
        for change in now.changes():
            yield from self._waiting_change(change)
        for task in now.unfinished_tasks():
            if not self._may_wait(task):
                yield f"{task.id} of {task.agent} is {task.state} for ever: {task.reason}"
        for delivery in now.undelivered():
            if not self._may_rest(delivery.reader):
                yield f"{delivery.id} is {delivery.receipt} for ever"

    def _may_rest(self, reader: str) -> bool:
        """Whether an agent with mail has a reason not to be woken. One that has a task before it is told with that."""
        owed = self.world.now.undelivered(reader=reader)
        if not any(each.wakes for each in owed) or any(task.agent == reader for task in self.world.now.ready_tasks()):
            return all(each.wakes or each.reason or each.run for each in owed)
        mail = next((each for each in waiting(self.world.now) if each.agent.id == reader), None)
        if mail is None or not self._slot(mail.agent):
            return mail is not None
        return isinstance(self._wake(mail), policy.Wait)

    def _wake(self, mail: Mail) -> policy.Wake | policy.Wait:
        """Whether an agent is to be woken for its mail now."""
        now = self.world.clock.now()
        resumes = PROVIDERS.get(mail.agent.provider).resumes
        limits = self.world.settings.settings.limits
        return policy.decide_wake(
            mail.agent, mail.runs, mail.items, limits, past=mail.past, idle=mail.idle, resumes=resumes, now=now
        )

    def _waiting_change(self, change: Change) -> Iterator[str]:
        if change.state in (ChangeState.QUEUED, ChangeState.TESTING) and not self._waits_for_all(change):
            yield f"{change.id} is {change.state} for ever: {change.reason}"
        if self._is_paused(change):
            return
        if change.hold is Hold.TROUBLE or (change.hold is Hold.CHECKS and self.world.settings.settings.checks.command):
            yield f"{change.id} is held for {change.hold} without a reason: {change.reason}"

    def _waits_for_all(self, change: Change) -> bool:
        """Whether it is in a line that stands still: a person has paused it, or main is red."""
        return change.queued and self._is_paused(change)

    def _is_paused(self, change: Change) -> bool:
        project = self.world.now.find(Project, change.project)
        return bool(project and (project.paused or project.red))

    def _may_wait(self, task: Task) -> bool:
        now = self.world.now
        latest = now.latest_runs([task.agent]).get(task.agent)
        match task.state:
            case TaskState.OPEN:
                ready = {each.id: agent for each, agent in _ready(now)}
                return task.id not in ready or not self._slot(ready[task.id])
            case TaskState.ACTIVE | TaskState.WAITING if now.undelivered(reader=task.agent):
                return self._may_rest(task.agent)
            case TaskState.ACTIVE:
                return bool(latest and latest.live)
            case TaskState.WAITING if task.reviews and not now.open_asks(sender=task.agent):
                return self._awaits_answer(task)
            case TaskState.LANDING if any(map(self._waits_for_all, now.changes_of_task(task.id))):
                return True
        return policy.is_settled(task, now.change_of_task(task.id), asked=bool(now.open_asks(sender=task.agent)))

    def _awaits_answer(self, task: Task) -> bool:
        """Whether something that a reviewer has objected to is not settled yet."""
        change = self.world.now.find(Change, task.reviews)
        said = reviews.open_blocking(said_about(self.world.now, task.reviews))
        return change is not None and not change.ended and any(each.sender == task.agent for each in said)

    def _slot(self, agent: Agent) -> bool:
        assert self.world.engine is not None
        lives, live = self.world.processes.lives, self.world.now.live_runs()
        gone = frozenset(run.id for run in live if run.identity and not lives(run.identity))
        return Slots(self.world.engine.ports).fits(self.world.now, agent, gone)

    # ── the end ──

    def drain(self) -> None:
        """When agents finish what they do, and people answer, everything ends."""
        world = self.world
        world.settings.check_with(CHECK)
        world.settings.limit(8)
        for repository in world.repositories:
            repository.switch("main")
        for _ in range(ROUNDS):
            if not list(self._unfinished()):
                break
            self._sleep()
            for repository in world.repositories:
                self._make_green(repository)
            for process in world.living():
                self._finish(process.launch.run)
            self._answer()
            self._agree()
            self._quiet()
        self._object("end", list(self._unfinished())[:3])
        self._object("end", list(Losses(self.world).all()))
        world.witness.ask()
        self._audit()

    def _sleep(self) -> None:
        """Let pass what agents rest for: hours, where the end of a quota was told before the clock was set back."""
        decided = map(self._wake, waiting(self.world.now))
        ends = [each.until for each in decided if isinstance(each, policy.Wait) and each.until is not None]
        if ends and not self.world.living():
            self.world.wait(max(0.0, max(ends) - self.world.clock.now()))

    def _make_green(self, repository: FakeRepository) -> None:
        """A person mends what is wrong with main itself."""
        files = self.world.git.objects.files(repository.branches["main"])
        if judge(files)[0]:
            repository.commit({name: _good(text) for name, text in files.items()})

    def _unfinished(self) -> Iterator[str]:
        now = self.world.now
        yield from (f"{run.id} is live" for run in now.live_runs())
        yield from (
            f"{task.id} is {task.state}: {task.reason}" for task in now.unfinished_tasks() if self._can_end(task)
        )
        yield from (f"{change.id} is {change.state}: {change.reason}" for change in now.changes())

    def _can_end(self, task: Task) -> bool:
        """A task whose needs were given up stays open until a person gives it up, too."""
        needs = [self.world.now.find(Task, need) for need in task.needs]
        return not any(need is None or not self._can_be_done(need) for need in needs)

    def _can_be_done(self, task: Task) -> bool:
        return task.state not in (TaskState.FAILED, TaskState.CANCELLED) and self._can_end(task)

    def _finish(self, run: str) -> None:
        """A good agent: back on its branch, all mended, main taken in, committed, said, gone."""
        world, process = self.world, self.world.processes.started[run]
        places = world.places(process)
        for place in places:
            self._mend(place, own_branch(world, process))
        if places:
            world.workdirs.give(process.launch.cwd, DONE)
        world.processes.exit(run, 0)

    def _mend(self, place: Place, branch: str) -> None:
        """Put one's own changes, made good, on main as it is: nothing of what main has lost comes back with them."""
        objects, tree, main = self.world.git.objects, place.tree, place.repository.branches["main"]
        tree.switch(branch)
        tree.commit()
        merged = objects.merge(main, tree.branches[branch]).files
        tree.files = {name: _good(text) for name, text in merged.items()}
        tree.branches[branch] = main
        tree.commit({f"done-{self.world.number()}": "well\n"})

    def _answer(self) -> None:
        world = self.world
        tasks = [
            task for task in world.now.unfinished_tasks() if not task.reviews or task.state is not TaskState.WAITING
        ]
        for name in dict.fromkeys(task.agent for task in tasks):
            world.call("answer", partial(_go_on, name), lambda _: None)

    def _agree(self) -> None:
        """People mend main, let the line go on, accept what was answered, and release what they hold."""
        world = self.world
        for repository in world.repositories:
            files = world.git.objects.files(repository.branches["main"])
            mended = {name: text.replace("bad", "well").replace("odd", "even") for name, text in files.items()}
            if mended != files:
                repository.commit(mended)
        for project in world.now.projects():
            if project.paused:
                world.call("resume", partial(_resume, project.path), lambda _: None)
        for change in world.now.changes():
            for comment in reviews.open_blocking(said_about(world.now, change.id)):
                world.call("resolve", partial(_accept, change.id, comment.id), lambda _: None)
            if change.hold is Hold.HUMAN and (not change.agent or BY_HAND in change.reason):
                world.call("release", partial(_let_go, change.id), lambda _: None)

    def _audit(self) -> None:
        self.world.turn_with(self._look())
        self.world.witness.ask()

    async def _look(self) -> None:
        """Every promise, as `windlass doctor --check` looks at it."""
        assert self.world.engine is not None
        async for finding in Audit(self.world.engine.ports).findings(list):
            if not finding.ok:
                self.world.witness.object(f"{finding.name}: {finding.detail}")


def _waits_for_author(task: Task) -> bool:
    """Whether it is a review that has objected: no person has to tell it to go on."""
    return bool(task.reviews) and task.state is TaskState.WAITING


async def _resume(path: str, engine: Engine) -> None:
    await engine.queue.resume(path)


async def _accept(change: str, comment: str, engine: Engine) -> None:
    await engine.reviews.resolve("", change, comment)


async def _let_go(change: str, engine: Engine) -> None:
    await engine.queue.release(change)


async def _go_on(name: str, engine: Engine) -> None:
    await engine.talk.answer(name, ["Go on."])


def _good(text: str) -> str:
    return text.replace("bad", "well").replace("odd", "even")
