"""Whatever happens in whatever order: the planner lands only what passed, and leaves nobody in line."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from windlass.core.gate.planner import plan
from windlass.core.gate.stacks import (
    Clash,
    Plan,
    QueuedChange,
    Rules,
    Stack,
    Trial,
    TrialVerdict,
    forget,
    measure,
    rebase,
)

RULES = st.builds(
    Rules,
    runners=st.integers(1, 6),
    strict=st.booleans(),
    retries=st.integers(0, 2),
    partition=st.booleans(),
    largest=st.integers(1, 20),
)
SHARES = st.sampled_from((0.0, 0.05, 0.3, 0.8))
LONGEST = 3
"""Steps within which a test ends, whatever else does."""


@dataclass(frozen=True)
class World:
    """Shares of what is bad, of what fails by chance, of pairs that clash, are red together, or need one another."""

    bad: float = 0.0
    flaky: float = 0.0
    clashing: float = 0.0
    apart: float = 0.0
    needy: float = 0.0


@dataclass
class Running:
    """A trial, and what was really tested."""

    trial: Trial
    tree: frozenset[str]
    begun: int


@dataclass
class Line:
    """A gate with tests that end in any order, and every promise of a plan looked at."""

    chance: random.Random
    rules: Rules
    world: World
    entries: dict[str, QueuedChange] = field(default_factory=dict)
    tests: list[Running] = field(default_factory=list)
    clashes: list[Clash] = field(default_factory=list)
    main: list[str] = field(default_factory=list)
    mains: list[frozenset[str]] = field(default_factory=lambda: [frozenset()])
    failures: list[frozenset[str]] = field(default_factory=list)
    truth: dict[frozenset[str], bool] = field(default_factory=dict)
    step: int = 0
    left: Counter[str] = field(default_factory=Counter)
    left_at: dict[str, int] = field(default_factory=dict)

    def arrive(self, needs: frozenset[str] = frozenset(), *, bad: bool | None = None, rank: int = 0) -> str:
        name = f"c{len(self.truth)}"
        change = frozenset((name,))
        self.truth[change] = self.chance.random() < self.world.bad if bad is None else bad
        proven = not self.truth[change] and self.chance.random() < 0.3
        parts = frozenset(self.chance.sample("xyz", self.chance.randint(0, 2)))
        entry = QueuedChange(change=name, turn=len(self.truth), needs=needs, proven=proven, parts=parts, rank=rank)
        self.entries[name] = entry
        return name

    def _pair(self, one: str, two: str, share: float, kind: str) -> bool:
        """The same answer each time, for each pair."""
        return random.Random(f"{kind}{min(one, two)}{max(one, two)}").random() < share

    def _broken(self, tree: frozenset[str]) -> bool:
        bad = any(self.truth[frozenset((each,))] for each in tree)
        return bad or any(self._pair(one, two, self.world.apart, "red") for one in tree for two in tree if one < two)

    def advance(self) -> None:
        """Plan until nothing more is to be done, then let some tests end."""
        self.step += 1
        while self._follow(self._planned()):
            pass
        assert self.tests or not self.entries, "nothing is under way, and changes are in line"
        for test in self.tests:
            due = self.step - test.begun >= LONGEST or self.chance.random() < 0.4
            if test.trial.verdict is None and due:
                self._end(test)

    def disturb(self) -> None:
        """A person commits to main, or takes a change out of the line."""
        if self.chance.random() < 0.5:
            commit = f"m{self.step}"
            self.truth[frozenset((commit,))] = False
            self.main.append(commit)
            self.mains.append(frozenset(self.main))
            for test in self.tests:
                test.trial = replace(test.trial, old=True)
        elif self.entries:
            self._leave((self.chance.choice(sorted(self.entries)),), "dropped")

    def _end(self, running: Running) -> None:
        fails = self._broken(running.tree) or self.chance.random() < self.world.flaky
        running.trial = replace(running.trial, verdict=TrialVerdict.FAILED if fails else TrialVerdict.PASSED)
        if fails:
            self.failures.append(running.tree)

    def _planned(self) -> Plan:
        trials = [test.trial for test in self.tests]
        rates = measure(landed=self.left["landed"], rejected=self.left["rejected"], runs=0, flaked=0)
        entries = list(self.entries.values())
        found = plan(entries, trials, self.clashes, rates, self.rules)
        assert found == plan(entries[::-1], trials, self.clashes[::-1], rates, self.rules)
        return found

    def _follow(self, found: Plan) -> bool:
        """Do as planned; whether to ask again."""
        for stack in found.start:
            self._fitting(stack)
        self._stop(found.stop)
        for change in found.reject:
            self._reject(change)
        if found.land:
            self._land(found.land)
            return True
        under_way = [test.trial.stack for test in self.tests if test.trial.verdict is None]
        assert len(found.start) + len(under_way) <= self.rules.runners
        assert len(set(found.start)) == len(found.start)
        assert set(found.start).isdisjoint(under_way)
        begun = [self._start(each) for each in found.start]
        return not all(begun)

    def _stop(self, stacks: tuple[Stack, ...]) -> None:
        self.tests = [test for test in self.tests if test.trial.verdict or test.trial.stack not in stacks]

    def _land(self, stack: Stack) -> None:
        tree = frozenset((*self.main, *stack))
        passed = {test.tree for test in self.tests if test.trial.verdict is TrialVerdict.PASSED}
        depths = range(1 if self.rules.strict else len(stack), len(stack) + 1)
        assert all(frozenset((*self.main, *stack[:depth])) in passed for depth in depths)
        assert not self._broken(tree)
        self._fitting(stack)
        self.main += stack
        self.mains.append(tree)
        self._leave(stack, "landed")
        for test in self.tests:
            (test.trial,) = rebase((test.trial,), stack) or (replace(test.trial, stack=()),)
        self.tests = [test for test in self.tests if test.trial.stack]

    def _reject(self, change: str) -> None:
        alone = sum(change in tree and tree - {change} in self.mains for tree in self.failures)
        assert alone > self.rules.retries
        self._leave((change,), "rejected")

    def _leave(self, stack: Stack, how: str) -> None:
        for change in stack:
            del self.entries[change]
            self.left[how] += 1
            self.left_at[change] = self.step
        if how != "landed":
            self.tests = [test for test in self.tests if forget((test.trial,), stack)]
            for each in [entry for entry in self.entries.values() if entry.needs.intersection(stack)]:
                if each.change in self.entries:  # what needs something that went back can't be in line
                    self._leave((each.change,), "without")
        self.clashes = [clash for clash in self.clashes if self.entries.keys() >= {clash.change, *clash.under}]

    def _start(self, stack: Stack) -> bool:
        """Stage it: begin the test, or find what is in the way."""
        if not self.entries.keys() >= set(stack):
            return False  # something has just gone back
        for place, change in enumerate(stack):
            if any(self._pair(change, each, self.world.clashing, "clash") for each in self.main):
                self._leave((change,), "returned")
                return False
            if any(self._pair(change, each, self.world.clashing, "clash") for each in stack[:place]):
                self.clashes.append(Clash(under=stack[:place], change=change))
                return False
        self.tests.append(Running(Trial(stack=stack), frozenset((*self.main, *stack)), self.step))
        return True

    def _fitting(self, stack: Stack) -> None:
        assert 0 < len(stack) == len(set(stack)) <= self.rules.largest
        for place, change in enumerate(stack):
            below = {*stack[:place], *self.main}
            assert self.entries[change].needs <= below
            assert not any(clash.change == change and set(clash.under) <= below for clash in self.clashes)


WORLDS = st.builds(World, bad=SHARES, flaky=SHARES, clashing=SHARES, apart=SHARES, needy=SHARES)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    rules=RULES,
    world=WORLDS,
    changes=st.integers(1, 14),
    disturbed=st.sets(st.integers(0, 30), max_size=4),
)
def test_everyone_lands_or_goes_back(seed: int, rules: Rules, world: World, changes: int, disturbed: set[int]) -> None:
    """In a bounded number of steps, and only what passed as it is lands, and only who failed alone goes back."""
    line = Line(random.Random(seed), rules, world)
    for _ in range(changes):
        older = [entry for entry in line.entries if line.chance.random() < world.needy / 4]
        line.arrive(frozenset(older), rank=line.chance.choice((0, 0, 0, 1)))
    while line.entries:
        if line.step in disturbed:
            line.disturb()
        line.advance()
        assert line.step <= 8 * LONGEST * (changes + 2) * (rules.retries + 1)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32), rules=RULES, bad=st.sampled_from((0.0, 0.5, 1.0)), apart=st.sampled_from((0.0, 0.05))
)
def test_nobody_waits_for_ever_while_others_come(seed: int, rules: Rules, bad: float, apart: float) -> None:
    """The first in line is decided in a bounded number of steps, though others arrive in each."""
    line = Line(random.Random(seed), rules, World(bad=bad, flaky=0.02, apart=apart))
    for _ in range(4):
        first = line.arrive()
    while first in line.entries:
        line.arrive()
        line.advance()
        assert line.step <= 40 * LONGEST * (rules.retries + 1)
