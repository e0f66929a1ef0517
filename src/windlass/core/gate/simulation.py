"""Simulate the gate with random failures: the planner of production lands changes of which some are bad."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from math import ceil
from typing import Protocol

from windlass.core.gate.planner import plan
from windlass.core.gate.stacks import (
    Clash,
    QueuedChange,
    Rules,
    Stack,
    Trial,
    TrialVerdict,
    flakes,
    forget,
    measure,
    rebase,
)

_PATIENCE = 5
"""Rounds for each change and each of its tries after which the planner counts as stuck."""


class Chance(Protocol):
    """Random numbers from 0 up to 1; the same seed gives the same ones."""

    def random(self) -> float: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The shares of bad changes, flaky checks and conflicts in a world."""

    branches: int = 100
    bad: float = 0.05
    """Share of changes that fail by themselves, and in every stack."""
    flaky: float = 0.02
    """Share of checks that fail by chance."""
    conflict: float = 0.02
    """Share of changes that can't be merged with some other one."""
    together: float = 0.0
    """Share of changes that are green alone, and red together with some other one."""
    proven: bool = False
    """Every change passed its own check before: bad ones never enter the queue."""
    returns: int = 0
    """How often the author of a good change that went back finds nothing to mend, and brings it again as it is."""
    spread: float = 0.0
    """Some checks take longer than others, up to this share: the planner must decide while some are under way."""
    rules: Rules = field(default_factory=Rules)


Flaky = Callable[[frozenset[str]], bool]
"""Whether a check of a tree with these changes fails by chance."""


@dataclass(frozen=True, slots=True)
class World:
    """The truth, which the planner does not know."""

    changes: tuple[str, ...]
    bad: frozenset[str]
    conflicts: frozenset[frozenset[str]]
    red: frozenset[frozenset[str]]

    def conflicting(self, change: str, others: Iterable[str]) -> bool:
        return any(frozenset((change, other)) in self.conflicts for other in others)

    def broken(self, changes: Iterable[str]) -> bool:
        """Whether a tree with these is truly red."""
        held = set(changes)
        return not held.isdisjoint(self.bad) or any(pair <= held for pair in self.red)


def imagine(setting: Setting, chance: Chance) -> World:
    """Make one random world of that kind."""
    changes = tuple(f"c{number}" for number in range(1, setting.branches + 1))
    bad = frozenset(change for change in changes if chance.random() < setting.bad)
    conflicts = _pairs(changes, setting.conflict, chance)
    red = _pairs(changes, setting.together, chance)
    inside = tuple(change for change in changes if change not in bad) if setting.proven else changes
    return World(inside, bad, conflicts, red)


def _pairs(changes: Sequence[str], share: float, chance: Chance) -> frozenset[frozenset[str]]:
    chosen = [change for change in changes if chance.random() < share]
    pairs = (frozenset((change, changes[int(chance.random() * len(changes))])) for change in chosen)
    return frozenset(pair for pair in pairs if len(pair) == 2)


@dataclass(slots=True)
class WorldResult:
    """The counts of one simulation."""

    runs: int = 0
    rounds: int = 0
    serial_rounds: int = 0
    landed: int = 0
    rejected: int = 0
    returned: int = 0
    """Back to their authors because they conflict with main."""
    broken_mains: int = 0
    """How often main was truly red after a landing."""
    wrong_landings: int = 0
    """Changes that landed in a stack which had not passed, or that are bad."""
    wrong_rejections: int = 0
    """Changes that went back although they were good."""
    unlucky_rejections: int = 0
    """… of which each failure was chance, and the budget of retries used up."""
    lost: int = 0
    """Good changes that never landed."""
    stuck: int = 0
    """Changes left in the queue without a plan."""


def summed(outcomes: Iterable[WorldResult]) -> WorldResult:
    """The sum of these results."""
    total = WorldResult()
    for outcome in outcomes:
        for count in fields(WorldResult):
            setattr(total, count.name, getattr(total, count.name) + getattr(outcome, count.name))
    return total


def play(setting: Setting, chance: Chance) -> WorldResult:
    """Simulate one world with the planner; and once more one change after the other, to compare."""
    world = imagine(setting, chance)
    outcome = live(world, setting, chance)
    outcome.serial_rounds = serial(world, setting, chance)
    return outcome


def live(world: World, setting: Setting, chance: Chance, *, flaky: Flaky | None = None) -> WorldResult:
    """Simulate this world with the planner; `flaky` says which checks fail by chance, if not chance itself."""
    gate = _Gate(world, setting, chance, flaky or (lambda _: chance.random() < setting.flaky))
    while gate.queue and not gate.outcome.stuck:
        gate.step()
    gate.outcome.rounds = ceil(gate.now)
    return gate.outcome


def serial(world: World, setting: Setting, chance: Chance) -> int:
    """Rounds that one change after the other takes, on one runner, with the same retries."""
    main: list[str] = []
    rounds = 0
    for change in world.changes:
        if world.conflicting(change, main):
            continue
        broken = world.broken((*main, change))
        for _ in range(setting.rules.retries + 1):
            rounds += 1
            if not broken and chance.random() >= setting.flaky:
                main.append(change)
                break
    return rounds


@dataclass(slots=True, eq=False)
class _Test:
    """A running check."""

    trial: Trial
    """Its stack now: changes below may have landed since."""
    tree: frozenset[str]
    flaked: bool
    over_at: float


class _Gate:
    """The steps of the engine, with a world instead of git and checks."""

    def __init__(self, world: World, setting: Setting, chance: Chance, flaky: Flaky) -> None:
        self.world = world
        self.setting = setting
        self.chance = chance
        self.flaky = flaky
        self.outcome = WorldResult()
        self.now = 0.0
        self.queue = {
            change: QueuedChange(change=change, turn=turn, proven=setting.proven)
            for turn, change in enumerate(world.changes)
        }
        self.main: list[str] = []
        self.tests: list[_Test] = []
        self.trials: tuple[Trial, ...] = ()
        self.clashes: list[Clash] = []
        self.flaked = 0
        self.mains = {frozenset[str]()}
        self.failed: list[frozenset[str]] = []
        self.brought = Counter(world.changes)
        """How often each change was brought."""

    def step(self) -> None:
        """Plan and land, start tests, and if nothing else is left to do, wait for the next test to end."""
        done = self.outcome
        rates = measure(landed=done.landed, rejected=done.rejected, runs=done.runs, flaked=self.flaked)
        trials = (*self.trials, *(test.trial for test in self.tests))
        plans = plan(tuple(self.queue.values()), trials, self.clashes, rates, self.setting.rules)
        self.tests = [test for test in self.tests if test.trial.stack not in plans.stop]
        for change in plans.reject:
            self._reject(change)
        if plans.land:
            self._land(plans.land)
        started = [self._stages(stack) and self._start(stack) for stack in plans.start]
        if not plans.land and not plans.reject and all(started):
            self._wait()

    def _stages(self, stack: Stack) -> bool:
        """Whether a stack can be staged; if not, remember the clash."""
        for place, change in enumerate(stack):
            if self.world.conflicting(change, self.main):
                self.outcome.returned += change in self.queue
                self._leave((change,))
                return False
            if self.world.conflicting(change, stack[:place]):
                self.clashes.append(Clash(under=stack[:place], change=change))
                return False
        return self.queue.keys() >= set(stack)

    def _start(self, stack: Stack) -> bool:
        tree = frozenset((*self.main, *stack))
        self.outcome.runs += 1
        takes = 1 + self.setting.spread * self.chance.random() if self.setting.spread else 1.0
        test = _Test(trial=Trial(stack=stack), tree=tree, flaked=self.flaky(tree), over_at=self.now + takes)
        self.tests.append(test)
        return True

    def _wait(self) -> None:
        """Wait until the next tests end. Without any, the planner is stuck."""
        patience = _PATIENCE * len(self.world.changes) * (self.setting.rules.retries + 1) * (self.setting.returns + 1)
        if not self.tests or self.now > patience * (1 + self.setting.spread):
            self.outcome.stuck = len(self.queue)
            return
        self.now = min(test.over_at for test in self.tests)
        for test in [test for test in self.tests if test.over_at <= self.now]:
            self.tests.remove(test)
            passed = not test.flaked and not self.world.broken(test.tree)
            if not passed:
                self.failed.append(test.tree)
            self.trials += (replace(test.trial, verdict=TrialVerdict.PASSED if passed else TrialVerdict.FAILED),)

    def _land(self, stack: Stack) -> None:
        passed = any(
            trial.stack == stack and trial.verdict is TrialVerdict.PASSED and not trial.old for trial in self.trials
        )
        self.outcome.wrong_landings += sum(not passed or change in self.world.bad for change in stack)
        self.main += stack
        self.mains.add(frozenset(self.main))
        self.outcome.broken_mains += self.world.broken(self.main)
        self.outcome.landed += len(stack)
        self.flaked += flakes(self.trials, stack)
        self.trials = rebase(self.trials, stack)
        moved = [(test, rebase((test.trial,), stack)) for test in self.tests]
        self.tests = [test for test, left in moved if left]
        for test, left in moved:
            test.trial = left[0] if left else test.trial
        for change in stack:
            del self.queue[change]
        self._keep_clashes()

    def _reject(self, change: str) -> None:
        self.outcome.rejected += 1
        entry = self.queue[change]
        self._leave((change,))
        if self.world.broken((*self.main, change)):
            return
        self.outcome.wrong_rejections += 1
        alone = sum(change in tree and tree - {change} in self.mains for tree in self.failed)
        self.outcome.unlucky_rejections += alone > self.setting.rules.retries
        if self.brought[change] > self.setting.returns:
            self.outcome.lost += 1
            return
        self.brought[change] += 1
        self.queue[change] = replace(entry, turn=entry.turn + len(self.world.changes))

    def _leave(self, gone: Stack) -> None:
        for change in gone:
            self.queue.pop(change, None)
        self.trials = forget(self.trials, gone)
        self.tests = [test for test in self.tests if forget((test.trial,), gone)]
        self._keep_clashes()

    def _keep_clashes(self) -> None:
        self.clashes = [clash for clash in self.clashes if self.queue.keys() >= {clash.change, *clash.under}]
