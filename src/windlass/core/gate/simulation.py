"""The gate in a world of chance: the very planner of production lands changes of which some are bad, and is watched."""

from __future__ import annotations

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
"""Rounds for each change and each of its tries after which something must be wrong with the planner."""


class Chance(Protocol):
    """Random numbers from 0 up to 1; the same seed gives the same ones."""

    def random(self) -> float: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What kind of world it is."""

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
    """Every change passed its own check before: bad ones never get into line."""
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
    """One world of that kind."""
    changes = tuple(f"c{number}" for number in range(1, setting.branches + 1))
    bad = frozenset(change for change in changes if chance.random() < setting.bad)
    conflicts = _pairs(changes, setting.conflict, chance)
    red = _pairs(changes, setting.together, chance)
    inside = tuple(change for change in changes if change not in bad) if setting.proven else changes
    return World(inside, bad, conflicts, red)


def _pairs(changes: Sequence[str], share: float, chance: Chance) -> frozenset[frozenset[str]]:
    chosen = [change for change in changes if chance.random() < share]
    pairs = (frozenset((each, changes[int(chance.random() * len(changes))])) for each in chosen)
    return frozenset(pair for pair in pairs if len(pair) == 2)


@dataclass(slots=True)
class WorldResult:
    """What became of one world."""

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
    stuck: int = 0
    """Changes for which the planner had no plan; they are left in line."""


def summed(outcomes: Iterable[WorldResult]) -> WorldResult:
    """All of these in one."""
    total = WorldResult()
    for outcome in outcomes:
        for count in fields(WorldResult):
            setattr(total, count.name, getattr(total, count.name) + getattr(outcome, count.name))
    return total


def play(setting: Setting, chance: Chance) -> WorldResult:
    """One world, landed by the planner; and once more one change after the other, to compare."""
    world = imagine(setting, chance)
    outcome = live(world, setting, chance)
    outcome.serial_rounds = serial(world, setting, chance)
    return outcome


def live(world: World, setting: Setting, chance: Chance, *, flaky: Flaky | None = None) -> WorldResult:
    """What the planner makes of this very world; `flaky` says which checks fail by chance, if not chance itself."""
    gate = _Gate(world, setting, chance, flaky or (lambda _: chance.random() < setting.flaky))
    while gate.line and not gate.outcome.stuck:
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
    """A check that is under way."""

    trial: Trial
    """What it is now: those below may have landed since."""
    tree: frozenset[str]
    flaked: bool
    over_at: float


class _Gate:
    """What the engine does, with a world instead of git and checks."""

    def __init__(self, world: World, setting: Setting, chance: Chance, flaky: Flaky) -> None:
        self.world = world
        self.setting = setting
        self.chance = chance
        self.flaky = flaky
        self.outcome = WorldResult()
        self.now = 0.0
        self.line = {
            each: QueuedChange(change=each, turn=turn, proven=setting.proven) for turn, each in enumerate(world.changes)
        }
        self.main: list[str] = []
        self.tests: list[_Test] = []
        self.trials: tuple[Trial, ...] = ()
        self.clashes: list[Clash] = []
        self.flaked = 0
        self.mains = {frozenset[str]()}
        self.failed: list[frozenset[str]] = []

    def step(self) -> None:
        """Plan and land; test what can be put together; and when that is all, wait for what ends next."""
        done = self.outcome
        rates = measure(landed=done.landed, rejected=done.rejected, runs=done.runs, flaked=self.flaked)
        trials = (*self.trials, *(test.trial for test in self.tests))
        plans = plan(tuple(self.line.values()), trials, self.clashes, rates, self.setting.rules)
        self.tests = [test for test in self.tests if test.trial.stack not in plans.stop]
        for change in plans.reject:
            self._reject(change)
        if plans.land:
            self._land(plans.land)
        started = [self._stages(each) and self._start(each) for each in plans.start]
        if not plans.land and not plans.reject and all(started):
            self._wait()

    def _stages(self, stack: Stack) -> bool:
        """Whether a stack can be made; if not, what is in the way is known from now on."""
        for place, change in enumerate(stack):
            if self.world.conflicting(change, self.main):
                self.outcome.returned += change in self.line
                self._leave((change,))
                return False
            if self.world.conflicting(change, stack[:place]):
                self.clashes.append(Clash(under=stack[:place], change=change))
                return False
        return self.line.keys() >= set(stack)

    def _start(self, stack: Stack) -> bool:
        tree = frozenset((*self.main, *stack))
        self.outcome.runs += 1
        takes = 1 + self.setting.spread * self.chance.random() if self.setting.spread else 1.0
        test = _Test(trial=Trial(stack=stack), tree=tree, flaked=self.flaky(tree), over_at=self.now + takes)
        self.tests.append(test)
        return True

    def _wait(self) -> None:
        """Until the next tests end. If there are none, the planner does not know what to do with the rest."""
        patience = _PATIENCE * len(self.world.changes) * (self.setting.rules.retries + 1)
        if not self.tests or self.now > patience * (1 + self.setting.spread):
            self.outcome.stuck = len(self.line)
            return
        self.now = min(each.over_at for each in self.tests)
        for test in [each for each in self.tests if each.over_at <= self.now]:
            self.tests.remove(test)
            passed = not test.flaked and not self.world.broken(test.tree)
            if not passed:
                self.failed.append(test.tree)
            self.trials += (replace(test.trial, verdict=TrialVerdict.PASSED if passed else TrialVerdict.FAILED),)

    def _land(self, stack: Stack) -> None:
        passed = any(
            trial.stack == stack and trial.verdict is TrialVerdict.PASSED and not trial.old for trial in self.trials
        )
        self.outcome.wrong_landings += sum(not passed or each in self.world.bad for each in stack)
        self.main += stack
        self.mains.add(frozenset(self.main))
        self.outcome.broken_mains += self.world.broken(self.main)
        self.outcome.landed += len(stack)
        self.flaked += flakes(self.trials, stack)
        self.trials = rebase(self.trials, stack)
        moved = [(test, rebase((test.trial,), stack)) for test in self.tests]
        self.tests = [each for each, left in moved if left]
        for each, left in moved:
            each.trial = left[0] if left else each.trial
        for change in stack:
            del self.line[change]
        self._keep_clashes()

    def _reject(self, change: str) -> None:
        self.outcome.rejected += 1
        if not self.world.broken((*self.main, change)):
            self.outcome.wrong_rejections += 1
            alone = sum(change in tree and tree - {change} in self.mains for tree in self.failed)
            self.outcome.unlucky_rejections += alone > self.setting.rules.retries
        self._leave((change,))

    def _leave(self, gone: Stack) -> None:
        for change in gone:
            self.line.pop(change, None)
        self.trials = forget(self.trials, gone)
        self.tests = [test for test in self.tests if forget((test.trial,), gone)]
        self._keep_clashes()

    def _keep_clashes(self) -> None:
        self.clashes = [clash for clash in self.clashes if self.line.keys() >= {clash.change, *clash.under}]
