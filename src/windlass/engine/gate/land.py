"""The land tick: stack the changes of a queue, test the very trees that main will have, and land them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from windlass.core.errors import Conflict, NotAllowed, Unavailable, WindlassError
from windlass.core.gate import rules as gate_rules
from windlass.core.gate.planner import plan
from windlass.core.gate.stacks import Plan, Stack, Trial
from windlass.core.nouns.change import Candidate, Change, ChangeState, CheckResult, Hold
from windlass.core.nouns.counted_tests import Tally, lost
from windlass.core.nouns.project import Project
from windlass.core.nouns.task import Task
from windlass.core.ports import Ports
from windlass.core.render import rejection
from windlass.engine.background import Background, Moves
from windlass.engine.checking import CheckRuns
from windlass.engine.gate.facts import RecentChanges, last_failure, look, queue_of
from windlass.engine.gate.holds import CHECKS_RETRY_SECONDS, MISSING, Holds
from windlass.engine.gate.known_trials import KnownTrials, QueueView, RunningCheck
from windlass.engine.gate.main_health import Health
from windlass.engine.gate.record import IN_QUEUE, GateRecord, Refusal
from windlass.engine.gate.reviews import Reviews
from windlass.engine.gate.stage import Staging
from windlass.engine.projects.absences import Absences
from windlass.engine.projects.tasks import Tasks

TRIES = 3
"""How many unexpected errors a change may have before the others go on without it."""


class Gate:
    """Moves main; projects do not wait for each other. Every step can be repeated after a crash."""

    def __init__(
        self,
        ports: Ports,
        tasks: Tasks,
        reviews: Reviews,
        *,
        background: Background,
        tests: Background,
        moves: Moves,
        absences: Absences,
    ) -> None:
        self.ports = ports
        self.store = ports.store
        self.git = ports.git
        self.projects = tasks.projects
        self.checks = CheckRuns(ports)
        self.health = Health(ports, tasks)
        self.reviews = reviews
        self.background = background
        self.tests = tests
        self.moves = moves
        self.absences = absences
        self.recent = RecentChanges(ports.store)
        self.record = GateRecord(ports)
        self.staging = Staging(ports, self.record, self.checks)
        self.holds = Holds(ports, moves, self.record, reviews)
        self._trials: dict[str, KnownTrials] = {}
        self._failures: Counter[str] = Counter()

    async def tick(self) -> bool:
        """Advance the reviews, and the queue of each project that has changes, running tests or a red main."""
        seen, changes, over = await self.store.read(look)
        await self.absences.notice(seen)
        there = {project.id for project, _ in seen} - (await self.absences.among(project for project, _ in seen)).keys()
        await self.reviews.tend(over, [change for change in changes if change.project in there])
        wanted = [change.project for change in changes]
        wanted += [key for key, trials in self._trials.items() if trials.tests]
        wanted += [project.id for project, _ in seen if project.red]
        for key in dict.fromkeys(wanted):
            self._advance_later(key)
        return False

    def _advance_later(self, project_id: str) -> None:
        self.background.begin(project_id, partial(self.advance, project_id))

    async def advance(self, project_id: str) -> None:
        """Take one project's queue as far as it goes without waiting for a check."""
        project, queue = await self.store.read(partial(queue_of, project_id))
        if await self._is_closed(project):
            await self._pause(project)
            return
        try:
            await self.holds.release(project, queue)
            while await self._step(project_id):
                pass
        except WindlassError:
            if not await self.absences.why(project):
                raise

    async def _is_closed(self, project: Project) -> bool:
        """Whether nothing may land: the queue is paused, or the repository is gone."""
        return bool(project.paused or await self.absences.why(project))

    async def _pause(self, project: Project) -> None:
        """Stop the tests of a queue where nothing may land; record changes that landed before a crash all the same."""
        trials = self._trials.setdefault(project.id, KnownTrials())
        self._stop(trials, trials.tests)
        for change in await self._queue(project):
            if change.state is ChangeState.TESTING and not await self.holds.landed_before(project, change):
                await self.record.again(change, "")

    async def _step(self, project_id: str) -> bool:
        """Look, let the planner decide, and act. Returns True if something has changed, so that one must look again."""
        (project, changes), past = await self.store.read(
            lambda store: (queue_of(project_id, store), self.recent.of(project_id, store))
        )
        if await self._is_closed(project):
            return False
        settings = self.ports.settings.at(project.path)
        trials = self._trials.setdefault(project.id, KnownTrials())
        gate = settings.gate
        if trials.use((settings.checks, settings.sandbox, gate.guarded, gate.guard, gate.shape)):
            self.holds.forget_try(f"{project.id} red")
        tip = await self.git.main(project)
        known = trials.heads if tip == trials.tip else {}
        waiting = [change for change in changes if change.state in IN_QUEUE]
        queue = [change for change in waiting if not await self._leaves(project, change, known=change.id in known)]
        if not settings.checks.command:
            for change in queue:
                await self.holds.for_checks(project, change)
            return False
        view = QueueView(project, settings, trials)
        queue = await self._unless_red(view, tip, queue)
        sound = trials.sound
        trials.follow(tip, {change.id: f"{change.head} {change.turn}" for change in queue})
        rules = gate_rules.rules(settings.gate, processors=self.ports.processors, alone=trials.alone)
        counted = [trial for trial in trials.all() if not trials.alone or len(trial.stack) == 1]
        rates = gate_rules.rates([*past, *changes])
        if trials.sound is False and sound is not False:  # main was found red while we looked elsewhere
            return True
        decided = plan(gate_rules.entries(queue), counted, trials.clashes, rates, rules)
        self._stop(trials, [test for test in trials.tests if test.dropped or test.stack in decided.stop])
        if self._is_main_to_blame(view, decided, counted):
            decided = replace(decided, reject=())
        done = await self._act(view, decided, {change.id: change for change in queue})
        may_test = not done and trials.sound is None and len(trials.tests) < rules.runners
        if may_test and (queue or (await self.projects.get(project.id)).red):
            self._test_main(view)
        return done

    async def _act(self, view: QueueView, decided: Plan, changes: Mapping[str, Change]) -> bool:
        for key in decided.reject:
            await self._reject(view, changes[key])
            view.trials.refused += 1
        if decided.land:
            landed = await self._land(view, [changes[key] for key in decided.land])
            return landed or bool(decided.reject)
        if decided.reject:
            return True
        started = [await self._start(view, stack, changes) for stack in decided.start]
        return not all(started)

    async def _unless_red(self, view: QueueView, tip: str, queue: list[Change]) -> list[Change]:
        """While main is red, only changes that may repair it go on; the others wait in the queue."""
        project, trials = view.project, view.trials
        if tip != trials.tip or (trials.sound is None and not trials.doubted):
            trials.follow(tip, trials.heads)
            trials.sound = await self.health.known(project, tip, view.settings)
        if trials.sound is not False:
            return queue
        if self.holds.is_over(f"{project.id} red", CHECKS_RETRY_SECONDS):
            self._test_main(view)
        for change in queue:
            if change.state is ChangeState.TESTING and not gate_rules.may_repair(change, project):
                await self.record.again(change, f"{project.main} is red")
        return [change for change in queue if gate_rules.may_repair(change, project)]

    def _is_main_to_blame(self, view: QueueView, decided: Plan, counted: list[Trial]) -> bool:
        """Before a change is rejected: whether main itself is red, or must be tested first."""
        trials = view.trials
        doubtful = trials.refused or gate_rules.fail_alike(counted)
        if decided.reject and trials.sound and not trials.doubted and doubtful:
            trials.sound, trials.doubted = None, True
        if not decided.reject or trials.sound is not None:
            return False
        self._test_main(view)
        return True

    def _test_main(self, view: QueueView) -> None:
        """Test main's tip in the background, unless that is running."""
        if not view.trials.looking:
            view.trials.looking = True
            self.tests.begin(f"main {view.project.id}", partial(self._run_main_test, view))

    async def _run_main_test(self, view: QueueView) -> None:
        project, trials, tip = view.project, view.trials, view.trials.tip
        try:
            sound = await self.health.test(project, tip, view.settings)
            self.holds.tried(f"{project.id} red")
            if tip == trials.tip:
                trials.sound, trials.counted = sound, sound is not None
            if sound is False:
                trials.pardon()
        finally:
            trials.looking = False
            self._advance_later(project.id)

    async def _leaves(self, project: Project, change: Change, *, known: bool) -> bool:
        """Whether a change has landed, was given up, or met an objection. One `known` on this tip has not landed."""
        if not known and await self.holds.landed_before(project, change):
            return True
        return await self._is_unwanted(project, change)

    async def _is_unwanted(self, project: Project, change: Change) -> bool:
        """Close a change that was given up, and hold one to which a reviewer objects. Returns whether it was either."""
        task, objection = await self.store.read(
            lambda store: (store.find(Task, change.task), self.reviews.objection_to(change, store))
        )
        if await self.holds.close_if_given_up(project, change, task):
            return True
        if objection:
            await self.record.held(change, Hold.REVIEW, objection, "")
        return bool(objection)

    async def _start(self, view: QueueView, stack: Stack, changes: Mapping[str, Change]) -> bool:
        """Stage a stack and test it. Returns False if the queue must be looked at again."""
        trials = view.trials
        for part in (stack[: count + 1] for count in range(len(stack))):
            if part not in trials.staged and not await self._put(view, part, changes[part[-1]]):
                return False
        chain = trials.chain(stack)
        health = (await self.projects.get(view.project.id)).health
        results = gate_rules.known_results([*changes.values()], chain[-1].tree, view.settings.checks, health)
        if trials.add_stored(stack, results):
            return False
        pairs = [(changes[key], candidate) for key, candidate in zip(stack, chain, strict=True)]
        if not await self.record.staged(pairs):
            return False
        test = RunningCheck(began=stack, trial=Trial(stack=stack))
        trials.tests.append(test)
        self.tests.begin(_key(test), partial(self._test, view, test, pairs))
        return True

    async def _put(self, view: QueueView, part: Stack, change: Change) -> bool:
        try:
            return await self.staging.put(view, part, change)
        except Exception as error:  # whatever it is, the change answers for it
            if await self._blame(change, error):
                raise  # the background reports it and pauses
            return False

    async def _test(self, view: QueueView, test: RunningCheck, pairs: list[tuple[Change, Candidate]]) -> None:
        """Run the checks on the tree of a stack, and record the result."""
        top, candidate = pairs[-1]
        try:
            judges = await self.checks.judges(
                view.project, view.settings, [staged for change, staged in pairs if change.allowed != change.head]
            )
            result, output = await self.checks.run(
                view.project, candidate, view.settings, judges, main=pairs[0][1].before
            )
            result = replace(result, document=f"checks/{top.id}", stack=test.began)
            await self.record.tested(top, result, output)
            files = [file for _, staged in pairs for file in staged.files]
            if result.passed or gate_rules.blames_author(result, files):
                view.trials.ended(test, result)
            else:
                for change, _ in pairs:
                    await self.holds.hold(change, Hold.CHECKS, f"{result.reason}: {result.command}", f"\n{MISSING}")
            self._failures.pop(top.id, None)
        except Exception as error:  # whatever it is, the change answers for it
            if await self._blame(top, error):
                raise
        finally:
            view.trials.over(test)
            self._advance_later(view.project.id)

    def _stop(self, trials: KnownTrials, tests: list[RunningCheck]) -> None:
        """Stop tests whose verdict is not needed."""
        for test in [*tests]:
            test.dropped = True
            trials.over(test)
            self.tests.stop(_key(test))

    async def _blame(self, change: Change, error: Exception) -> bool:
        """Hold a change that fails again and again, so that others can land. False: its repository has just gone."""
        if await self.absences.why(await self.projects.get(change.project)):
            return False
        self._failures[change.id] += 1
        if self._failures[change.id] < TRIES:
            await self.record.delayed(change, f"not tried yet: {error}")
        else:
            await self.holds.hold(change, Hold.TROUBLE, str(error), getattr(error, "hint", ""))
        return True

    async def _reject(self, view: QueueView, change: Change) -> None:
        """Send a change whose checks fail on main back to its author, with the exact output."""
        result, output = await self.store.read(partial(last_failure, change.id))
        if result is None:  # its author has brought it again since
            view.trials.forget([change.id])
        else:
            refusal = Refusal(result.reason, rejection(change, result, output), by_checks=True)
            await self.record.refused(change, refusal, view.settings.limits)

    async def _land(self, view: QueueView, changes: list[Change]) -> bool:
        """Move main to a stack that has passed, and record the receipts. Returns False if it has to wait a little."""
        project = view.project
        async with self.moves[project.id]:
            (current, queue), past = await self.store.read(
                lambda store: (queue_of(project.id, store), self.recent.of(project.id, store))
            )
            if await self._is_closed(current):
                return True
            if any([await self._is_unwanted(project, change) for change in changes]):
                return True
            if any([await self.holds.in_doubt(change) for change in changes]):
                return False
            stack = tuple(change.id for change in changes)
            chain = view.trials.chain(stack)
            top = chain[-1]
            if len(chain) > 1:
                chain = [replace(candidate, top=top.commit, proof=top.tree) for candidate in chain]
            pairs = [*zip(changes, chain, strict=True)]
            results = self._results(view, queue, top.tree)
            passed = [result for result in results if result.passed]
            before = gate_rules.tests_of(past, current.health)
            if passed and self._must_count_first(view, pairs, before):
                return False
            if passed and await self._lacks_tests(view, pairs, lost(before, passed[-1].tests)):
                return True
            if not passed or not await self.record.chosen(pairs, passed[-1]):
                view.trials.forget(stack)
                return True
            try:
                await self._move(view, pairs, passed[-1], before)
                return True
            except Exception as error:  # whatever it is, the change answers for it
                if await self._blame(changes[-1], error):
                    raise
                return True

    def _results(self, view: QueueView, queue: list[Change], tree: str) -> list[CheckResult]:
        return gate_rules.known_results(queue, tree, view.settings.checks)

    def _must_count_first(self, view: QueueView, pairs: list[tuple[Change, Candidate]], before: Tally | None) -> bool:
        """Whether main's tests must be counted before a stack that changes tests may land; if so, that begins."""
        files = [file for change, candidate in pairs if _is_unseen(change) for file in candidate.files]
        if before is not None or view.trials.counted or not gate_rules.touches_tests(files):
            return False
        self._test_main(view)
        return True

    async def _lacks_tests(self, view: QueueView, pairs: list[tuple[Change, Candidate]], gone: str) -> bool:
        """Whether tests are `gone` with a stack. If so, its change is held; of several, each is tried by itself."""
        unseen = [change for change, _ in pairs if _is_unseen(change)]
        if gone and unseen and len(pairs) > 1:
            view.trials.alone = True
        elif gone and unseen:
            await self.holds.for_tests(unseen[0], gone)
        return bool(gone and unseen)

    async def _move(
        self, view: QueueView, pairs: list[tuple[Change, Candidate]], proof: CheckResult, before: Tally | None
    ) -> None:
        project, trials = view.project, view.trials
        chain = [candidate for _, candidate in pairs]
        try:
            await self.git.land(project, *chain)
        except Conflict:
            if await self.git.main(project) == trials.tip:
                raise
            return  # main has moved: the stack is staged and tested again
        except (NotAllowed, Unavailable) as error:
            trials.alone = len(pairs) > 1
            if not trials.alone:
                await self.holds.hold(pairs[0][0], Hold.CHECKOUT, str(error), error.hint)
            return
        landings = [replace(await self.git.receipt(project, each), tests_before=before) for each in chain]
        await self.record.landed([*zip((change for change, _ in pairs), landings, strict=True)])
        trials.landed(tuple(change.id for change, _ in pairs), chain[-1].commit)
        await self.health.recovered(project, proof)

    async def _queue(self, project: Project) -> list[Change]:
        return await self.store.read(lambda store: store.changes(project=project.id))


def _is_unseen(change: Change) -> bool:
    """Whether no person has looked at these commits, or asked for them."""
    return change.allowed != change.head and not change.undoes


def _key(test: RunningCheck) -> str:
    return f"{id(test):x}"
