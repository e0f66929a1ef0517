"""The gate in a world of chance: the very planner of production lands changes of which some are bad, and is watched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Protocol

from windlass.core.plan import plan
from windlass.core.trial import Clash, Entry, Rules, Stack, Trial, Verdict, flakes, forget, measure, rebase

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
    rules: Rules = field(default_factory=Rules)


@dataclass(frozen=True, slots=True)
class World:
    """The truth, which the planner does not know."""

    changes: tuple[str, ...]
    bad: frozenset[str]
    conflicts: frozenset[frozenset[str]]
    red: frozenset[frozenset[str]]

    def conflicting(self, change: str, others: Iterable[str]) -> bool:
        return any(frozenset((change, each)) in self.conflicts for each in others)

    def broken(self, changes: Iterable[str]) -> bool:
        """Whether a tree with these is truly red."""
        held = set(changes)
        return not held.isdisjoint(self.bad) or any(pair <= held for pair in self.red)


def imagine(setting: Setting, chance: Chance) -> World:
    """One world of that kind."""
    changes = tuple(f"c{number}" for number in range(1, setting.branches + 1))
    bad = frozenset(each for each in changes if chance.random() < setting.bad)
    conflicts = _pairs(changes, setting.conflict, chance)
    red = _pairs(changes, setting.together, chance)
    inside = tuple(each for each in changes if each not in bad) if setting.proven else changes
    return World(inside, bad, conflicts, red)


def _pairs(changes: Sequence[str], share: float, chance: Chance) -> frozenset[frozenset[str]]:
    chosen = [each for each in changes if chance.random() < share]
    pairs = (frozenset((each, changes[int(chance.random() * len(changes))])) for each in chosen)
    return frozenset(each for each in pairs if len(each) == 2)


@dataclass(slots=True)
class Outcome:
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


def summed(outcomes: Iterable[Outcome]) -> Outcome:
    """All of these in one."""
    total = Outcome()
    for each in outcomes:
        for count in fields(Outcome):
            setattr(total, count.name, getattr(total, count.name) + getattr(each, count.name))
    return total


def play(setting: Setting, chance: Chance) -> Outcome:
    """One world, landed by the planner; and once more one change after the other, to compare."""
    world = imagine(setting, chance)
    outcome = live(world, setting, chance)
    outcome.serial_rounds = serial(world, setting, chance)
    return outcome


def live(world: World, setting: Setting, chance: Chance) -> Outcome:
    """What the planner makes of this very world."""
    gate = _Gate(world, setting, chance)
    while gate.line and not gate.outcome.stuck:
        gate.round()
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


class _Gate:
    """What the engine does, with a world instead of git and checks."""

    def __init__(self, world: World, setting: Setting, chance: Chance) -> None:
        self.world = world
        self.setting = setting
        self.chance = chance
        self.outcome = Outcome()
        self.line = {
            each: Entry(change=each, turn=turn, proven=setting.proven) for turn, each in enumerate(world.changes)
        }
        self.main: list[str] = []
        self.trials: tuple[Trial, ...] = ()
        self.clashes: list[Clash] = []
        self.flaked = 0
        self.mains = {frozenset[str]()}
        self.failed: list[frozenset[str]] = []

    def round(self) -> None:
        """Plan, land and stage until tests are under way, and take all of these to their end."""
        while self.line and not self.outcome.stuck:
            start = self._planned()
            staged = [self._stages(each) for each in start]
            if staged and all(staged):
                self._test(start)
                return

    def _planned(self) -> tuple[Stack, ...]:
        done = self.outcome
        rates = measure(landed=done.landed, rejected=done.rejected, runs=done.runs, flaked=self.flaked)
        plans = plan(tuple(self.line.values()), self.trials, self.clashes, rates, self.setting.rules)
        for change in plans.reject:
            self._reject(change)
        if plans.land:
            self._land(plans.land)
        patience = _PATIENCE * len(self.world.changes) * (self.setting.rules.retries + 1)
        if not (plans.land or plans.reject or plans.start) or done.rounds > patience:
            done.stuck = len(self.line)
        return plans.start

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
        return True

    def _test(self, stacks: Sequence[Stack]) -> None:
        self.outcome.rounds += 1
        self.outcome.runs += len(stacks)
        for stack in stacks:
            tree = frozenset((*self.main, *stack))
            flaked = self.chance.random() < self.setting.flaky
            passed = not flaked and not self.world.broken(tree)
            if not passed:
                self.failed.append(tree)
            self.trials += (Trial(stack=stack, verdict=Verdict.PASSED if passed else Verdict.FAILED),)

    def _land(self, stack: Stack) -> None:
        passed = any(each.stack == stack and each.verdict is Verdict.PASSED and not each.old for each in self.trials)
        self.outcome.wrong_landings += sum(not passed or each in self.world.bad for each in stack)
        self.main += stack
        self.mains.add(frozenset(self.main))
        self.outcome.broken_mains += self.world.broken(self.main)
        self.outcome.landed += len(stack)
        self.flaked += flakes(self.trials, stack)
        self.trials = rebase(self.trials, stack)
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
        self._keep_clashes()

    def _keep_clashes(self) -> None:
        self.clashes = [each for each in self.clashes if self.line.keys() >= {each.change, *each.under}]
