"""The land tick: changes are put on one another, tested on the very trees that main will have, and landed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import replace
from functools import partial

from windlass.core.errors import Conflict, NotAllowed, Unavailable
from windlass.core.gate import rules as gate_rules
from windlass.core.gate.planner import plan
from windlass.core.gate.stacks import Plan, Stack, Trial
from windlass.core.nouns.change import Candidate, Change, ChangeState, CheckResult, Hold
from windlass.core.nouns.counted_tests import tally
from windlass.core.nouns.document import Document
from windlass.core.nouns.project import Project
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading
from windlass.core.render import rejection
from windlass.core.settings.schema import Settings
from windlass.engine.background import Background, Moves
from windlass.engine.bell import Bell
from windlass.engine.gate.holds import CHECKS_RETRY_SECONDS, MISSING, Holds
from windlass.engine.gate.known_trials import KnownTrials, RunningCheck
from windlass.engine.gate.main_health import Health
from windlass.engine.gate.record import IN_LINE, GateRecord, Refusal
from windlass.engine.gate.reviews import Reviews
from windlass.engine.gate.stage import Staging
from windlass.engine.projects.tasks import Tasks

PAST = 100
"""How many changes that are over tell how often checks fail."""
TRIES = 3
"""How often something unexpected may happen to a change before the others go on without it."""


class Gate:
    """Moves main, one lane per project. Every step can be repeated after a crash."""

    def __init__(
        self,
        ports: Ports,
        bell: Bell,
        tasks: Tasks,
        reviews: Reviews,
        *,
        background: Background,
        tests: Background,
        moves: Moves,
    ) -> None:
        self.store = ports.store
        self.git = ports.git
        self.checks = ports.checks
        self.settings = ports.settings
        self.clock = ports.clock
        self.processors = ports.processors
        self.projects = tasks.projects
        self.health = Health(ports, bell, tasks)
        self.reviews = reviews
        self.background = background
        self.tests = tests
        self.moves = moves
        self.verdicts = GateRecord(ports, bell)
        self.staging = Staging(ports, self.verdicts)
        self.holds = Holds(ports, moves, self.verdicts, reviews)
        self._boards: dict[str, KnownTrials] = {}
        self._failures: Counter[str] = Counter()

    async def tick(self) -> bool:
        """Begin a lane for each project that has changes waiting or tests under way; see to those that are reviewed."""
        await self.reviews.tend()
        queue = await self.store.read(lambda store: store.changes())
        at_work = [key for key, board in self._boards.items() if board.tests]
        at_work += [each.id for each in await self.store.read(lambda store: store.projects()) if each.red]
        for project in dict.fromkeys([*(each.project for each in queue), *at_work]):
            self.background.begin(project, partial(self.advance, project))
        return False

    async def advance(self, project_id: str) -> None:
        """Take one project's queue as far as it goes without waiting for a check."""
        project = await self.projects.get(project_id)
        if project.paused:
            await self._rest(project)
            return
        await self.holds.release(project, await self._queue(project))
        while not (await self.projects.get(project_id)).paused and await self._step(project):
            pass

    async def _rest(self, project: Project) -> None:
        """Nothing is tested while the queue is paused; what has landed before a crash is written down all the same."""
        board = self._boards.setdefault(project.id, KnownTrials())
        self._stop(board, board.tests)
        for change in await self._queue(project):
            if change.state is ChangeState.TESTING and not await self.holds.landed_before(project, change):
                await self.verdicts.again(change, "")

    async def _step(self, project: Project) -> bool:
        """Look, let the planner decide, and act. True: something has changed, so look again."""
        settings = self.settings.at(project.path)
        board = self._boards.setdefault(project.id, KnownTrials())
        board.use((settings.checks, settings.gate.guarded, settings.gate.shape))
        tip = await self.git.main(project)
        queue = await self._admitted(project, known=board.heads if tip == board.tip else ())
        if not settings.checks.command:
            for each in queue:
                await self.holds.for_checks(project, each)
            return False
        queue = await self._unless_red(project, board, tip, queue, settings)
        sound = board.sound
        board.follow(tip, {each.id: f"{each.head} {each.turn}" for each in queue})
        rules = gate_rules.rules(settings.gate, processors=self.processors, alone=board.alone)
        trials = [each for each in board.known() if not board.alone or len(each.stack) == 1]
        rates = gate_rules.rates(await self.store.read(partial(_past, project.id)))
        if board.sound is False and sound is not False:  # main was found red while we looked elsewhere
            return True
        decided = plan(gate_rules.entries(queue), trials, board.clashes, rates, rules)
        self._stop(board, [test for test in board.tests if test.dropped or test.stack in decided.stop])
        if self._is_main_to_blame(project, board, decided, trials, settings):
            decided = replace(decided, reject=())
        done = await self._act(project, board, decided, {each.id: each for each in queue}, settings)
        red = (await self.projects.get(project.id)).red
        if (queue or red) and not done and board.sound is None and len(board.tests) < rules.runners:
            self._look(project, board, settings)
        return done

    async def _act(
        self, project: Project, board: KnownTrials, decided: Plan, changes: Mapping[str, Change], settings: Settings
    ) -> bool:
        for each in decided.reject:
            await self._reject(board, changes[each], settings)
            board.refused += 1
        if decided.land:
            landed = await self._land(project, board, [changes[each] for each in decided.land], settings)
            return landed or bool(decided.reject)
        if decided.reject:
            return True
        started = [await self._start(project, board, stack, changes, settings) for stack in decided.start]
        return not all(started)

    # ── main itself ──

    async def _unless_red(
        self, project: Project, board: KnownTrials, tip: str, queue: list[Change], settings: Settings
    ) -> list[Change]:
        """While main is red only what may mend it goes on; the others are back in line."""
        if tip != board.tip or (board.sound is None and not board.doubted):
            board.follow(tip, board.heads)
            board.sound = await self.health.known(project, tip, settings)
        if board.sound is not False:
            return queue
        if self.holds.is_over(f"{project.id} red", CHECKS_RETRY_SECONDS):
            self._look(project, board, settings)
        others = [each for each in queue if not gate_rules.may_mend(each, project)]
        for other in others:
            if other.state is ChangeState.TESTING:
                await self.verdicts.again(other, f"{project.main} is red")
        return [each for each in queue if each not in others]

    def _is_main_to_blame(
        self, project: Project, board: KnownTrials, decided: Plan, trials: list[Trial], settings: Settings
    ) -> bool:
        """Before a change goes back: whether main is red itself, or that is still to be found out."""
        if decided.reject and board.sound and not board.doubted and (board.refused or gate_rules.fail_alike(trials)):
            board.sound, board.doubted = None, True
        if not decided.reject or board.sound is not None:
            return False
        self._look(project, board, settings)
        return True

    def _look(self, project: Project, board: KnownTrials, settings: Settings) -> None:
        """Test main's tip, beside everything else."""
        if not board.looking:
            board.looking = True
            self.tests.begin(f"main {project.id}", partial(self._look_at, project, board, settings))

    async def _look_at(self, project: Project, board: KnownTrials, settings: Settings) -> None:
        tip = board.tip
        try:
            sound = await self.health.test(project, tip, settings)
            self.holds.tried(f"{project.id} red")
            if tip == board.tip:
                board.sound = sound
            if sound is False:
                board.pardon()
        finally:
            board.looking = False
            self.background.begin(project.id, partial(self.advance, project.id))

    # ── the line ──

    async def _admitted(self, project: Project, *, known: Container[str]) -> list[Change]:
        """What is in the line, without what has landed, was given up, or has an objection to be answered."""
        queue = [each for each in await self._queue(project) if each.state in IN_LINE]
        return [each for each in queue if not await self._leaves(project, each, known=each.id in known)]

    async def _leaves(self, project: Project, change: Change, *, known: bool) -> bool:
        """One that was in line with main where it is now can't have landed."""
        if not known and await self.holds.landed_before(project, change):
            return True
        return await self.holds.given_up(project, change) or await self._objected(change)

    async def _objected(self, change: Change) -> bool:
        """Whether a reviewer has something against it that is not answered yet; then it waits for that."""
        objection = await self.reviews.objection(change)
        if objection:
            await self.verdicts.held(change, Hold.REVIEW, objection, "")
        return bool(objection)

    # ── testing ──

    async def _start(
        self, project: Project, board: KnownTrials, stack: Stack, changes: Mapping[str, Change], settings: Settings
    ) -> bool:
        """Put a stack together and test it. False: what is known of the line has changed."""
        for part in (stack[: count + 1] for count in range(len(stack))):
            if part not in board.staged and not await self._put(project, board, part, changes[part[-1]], settings):
                return False
        chain = board.chain(stack)
        health = (await self.projects.get(project.id)).health
        results = gate_rules.known_results([*changes.values()], chain[-1].tree, settings.checks, health)
        if board.tell(stack, results):
            return False
        pairs = [(changes[each], candidate) for each, candidate in zip(stack, chain, strict=True)]
        if not await self.verdicts.staged(pairs):
            return False
        test = RunningCheck(began=stack, trial=Trial(stack=stack))
        board.tests.append(test)
        self.tests.begin(_key(test), partial(self._test, project, board, test, pairs, settings))
        return True

    async def _put(self, project: Project, board: KnownTrials, part: Stack, change: Change, settings: Settings) -> bool:
        try:
            return await self.staging.put(project, board, part, change, settings)
        except Exception as error:
            await self._blame(change, error)
            raise  # the lane reports it and pauses

    async def _test(
        self,
        project: Project,
        board: KnownTrials,
        test: RunningCheck,
        pairs: list[tuple[Change, Candidate]],
        settings: Settings,
    ) -> None:
        """Run the checks on the tree of a stack, and write down what they said."""
        top, candidate = pairs[-1]
        try:
            result, output = await self.checks.run(project, candidate, settings.checks, self.clock.now())
            result = replace(result, document=f"checks/{top.id}", stack=test.began, tests=tally(output))
            await self.verdicts.tested(top, result, output)
            if result.passed or gate_rules.blames_author(result, [file for _, it in pairs for file in it.files]):
                board.ended(test, result)
            else:
                for change, _ in pairs:
                    await self.holds.hold(change, Hold.CHECKS, f"{result.reason}: {result.command}", f"\n{MISSING}")
            self._failures.pop(top.id, None)
        except Exception as error:
            await self._blame(top, error)
            raise
        finally:
            board.over(test)
            self.background.begin(project.id, partial(self.advance, project.id))

    def _stop(self, board: KnownTrials, tests: list[RunningCheck]) -> None:
        """Break off tests whose verdict nobody needs."""
        for test in [*tests]:
            test.dropped = True
            board.over(test)
            self.tests.stop(_key(test))

    async def _blame(self, change: Change, error: Exception) -> None:
        """What fails again and again is set aside, so that the others can land."""
        self._failures[change.id] += 1
        if self._failures[change.id] < TRIES:
            await self.verdicts.delayed(change, f"not tried yet: {error}")
        else:
            await self.holds.hold(change, Hold.TROUBLE, str(error), getattr(error, "hint", ""))

    async def _reject(self, board: KnownTrials, change: Change, settings: Settings) -> None:
        """Its checks fail on main, by its own fault: back to its author, with the exact output."""
        result, output = await self.store.read(partial(_last_failure, change.id))
        if result is None:  # nothing that was found before counts any more: it was brought again since
            board.forget([change.id])
        else:
            refusal = Refusal(result.reason, rejection(change, result, output), by_checks=True)
            await self.verdicts.refused(change, refusal, settings.limits)

    # ── landing ──

    async def _land(self, project: Project, board: KnownTrials, changes: list[Change], settings: Settings) -> bool:
        """Move main to a stack that has passed, and write down the receipts. False: it has to wait a little."""
        async with self.moves[project.id]:
            if (await self.projects.get(project.id)).paused:
                return True
            if any([await self.holds.given_up(project, change) or await self._objected(change) for change in changes]):
                return True
            if any([await self.holds.in_doubt(change) for change in changes]):
                return False
            stack = tuple(change.id for change in changes)
            chain = board.chain(stack)
            top = chain[-1]
            if len(chain) > 1:
                chain = [replace(each, top=top.commit, proof=top.tree) for each in chain]
            pairs = [*zip(changes, chain, strict=True)]
            passed = [result for result in await self._results(project, top.tree, settings) if result.passed]
            if not passed or not await self.verdicts.chosen(pairs, passed[-1]):
                board.forget(stack)
                return True
            try:
                await self._move(project, board, pairs, passed[-1])
                return True
            except Exception as error:
                await self._blame(changes[-1], error)
                raise

    async def _move(
        self, project: Project, board: KnownTrials, pairs: list[tuple[Change, Candidate]], proof: CheckResult
    ) -> None:
        chain = [candidate for _, candidate in pairs]
        try:
            await self.git.land(project, *chain)
        except Conflict:
            if await self.git.main(project) == board.tip:
                raise
            return  # main has moved: all of it is put together and tested again
        except (NotAllowed, Unavailable) as error:
            board.alone = len(pairs) > 1
            if not board.alone:
                await self.holds.hold(pairs[0][0], Hold.CHECKOUT, str(error), error.hint)
            return
        before = gate_rules.tests_of(await self.store.read(partial(_past, project.id)))
        landings = [replace(await self.git.receipt(project, each), tests_before=before) for each in chain]
        await self.verdicts.landed([*zip((change for change, _ in pairs), landings, strict=True)])
        board.landed(tuple(change.id for change, _ in pairs), chain[-1].commit)
        await self.health.recovered(project, proof)

    async def _results(self, project: Project, tree: str, settings: Settings) -> list[CheckResult]:
        return gate_rules.known_results(await self._queue(project), tree, settings.checks)

    async def _queue(self, project: Project) -> list[Change]:
        return await self.store.read(lambda store: store.changes(project=project.id))


def _past(project: str, store: Reading) -> list[Change]:
    """What has lately become of changes, and what is known of those in line."""
    return [*store.changes(project=project, ended=True, limit=PAST), *store.changes(project=project)]


def _last_failure(change: str, store: Reading) -> tuple[CheckResult | None, str]:
    """The newest test with this change on top that failed, and what it printed."""
    found = store.find(Change, change)
    failed = [check for check in found.checks if not check.passed] if found else []
    kept = store.find(Document, f"{found.project}/{failed[-1].document}") if found and failed else None
    return (failed[-1] if failed else None), kept.body if kept else ""


def _key(test: RunningCheck) -> str:
    return f"{id(test):x}"
