"""Trials of one project's queue since main last moved. Memory only: all of it can be found out again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from windlass.core.gate.stacks import Clash, Stack, Trial, TrialVerdict, rebase
from windlass.core.nouns.change import Candidate, CheckResult
from windlass.core.nouns.project import Project
from windlass.core.settings.schema import Settings


@dataclass(slots=True, eq=False)
class RunningCheck:
    """A check that is running."""

    began: Stack
    """The stack that it was started for."""
    trial: Trial
    """Its stack now: changes below may have landed since."""
    dropped: bool = False
    """Its verdict is not needed any more."""
    doubtful: bool = False
    """Main may have been red below it: a failure says nothing."""

    @property
    def stack(self) -> Stack:
        return self.trial.stack


@dataclass(slots=True)
class KnownTrials:
    """Staged stacks, their clashes and their trials, all on one tip of main."""

    tip: str = ""
    heads: dict[str, str] = field(default_factory=dict)
    staged: dict[Stack, Candidate] = field(default_factory=dict)
    """The candidate on top of each stack."""
    clashes: list[Clash] = field(default_factory=list)
    finished: list[Trial] = field(default_factory=list)
    tests: list[RunningCheck] = field(default_factory=list)
    told: set[Stack] = field(default_factory=set)
    """Stacks whose stored results are among the finished trials."""
    sound: bool | None = None
    """Whether the tip itself passes the checks; None if that is unknown."""
    counted: bool = False
    """Whether the tip's checks ran since we look at it, so that its tests are counted if they count any."""
    looking: bool = False
    """Whether the tip is being tested."""
    doubted: bool = False
    """Whether so many changes failed on a sound tip that it was tested once more."""
    refused: int = 0
    """How many changes were rejected since the last landing."""
    settings: object = None
    """The settings that all of this was found with."""
    alone: bool = False
    """A stack could not land: until a change has landed, each is tried by itself."""

    def use(self, settings: object) -> bool:
        """Forget what was found with other settings. Returns whether they are others."""
        other = settings != self.settings
        if other:
            self.settings, self.tip = settings, ""
        return other

    def follow(self, tip: str, heads: Mapping[str, str]) -> None:
        """Forget changes that have left or have other commits now (`heads`), and everything if main has moved."""
        if tip != self.tip:
            self._main_moved(tip)
        other = {change for change, head in self.heads.items() if heads.get(change) != head}
        self.heads = dict(heads)
        if other:
            self.forget(other)

    def landed(self, stack: Stack, tip: str) -> None:
        """Main is at the top of this stack now. Stacks that begin with it keep their trials."""
        size = len(stack)
        on_it = [each for each in self.staged if each[:size] == stack and each != stack]
        self.staged = {each[size:]: self.staged[each] for each in on_it}
        self.told = {each[size:] for each in self.told if each[:size] == stack and each != stack}
        over = [clash for clash in self.clashes if clash.under[:size] == stack and clash.under != stack]
        self.clashes = [Clash(under=clash.under[size:], change=clash.change) for clash in over]
        self.finished = [*rebase(self.finished, stack)]
        for test in self.tests:
            moved = rebase([test.trial], stack)
            test.trial, test.dropped = (moved[0], test.dropped) if moved else (test.trial, True)
        self._doubt()
        self.tip = tip
        self.alone = self.doubted = False
        self.sound, self.counted, self.refused = True, True, 0

    def all(self) -> list[Trial]:
        """All trials, finished and running."""
        return [*self.finished, *(test.trial for test in self.tests if not test.dropped)]

    def add_stored(self, stack: Stack, results: Iterable[CheckResult]) -> bool:
        """Take stored results of a stack's tree as trials, once. Returns whether there were any."""
        if stack in self.told:
            return False
        self.told.add(stack)
        found = [Trial(stack=stack, verdict=_verdict(result)) for result in results]
        self.finished += found
        return bool(found)

    def ended(self, test: RunningCheck, result: CheckResult) -> None:
        """Keep the verdict of a check."""
        if test.dropped or (test.doubtful and not result.passed):
            return
        self.finished.append(replace(test.trial, verdict=_verdict(result)))
        if not test.trial.old:
            self.told.add(test.stack)  # its stored result is a trial now

    def pardon(self) -> None:
        """Main itself is red: forget all that failed on it."""
        self.finished = [trial for trial in self.finished if trial.verdict is TrialVerdict.PASSED]
        for test in self.tests:
            test.dropped = True

    def over(self, test: RunningCheck) -> None:
        """A check has ended, or was stopped before its first step."""
        if test in self.tests:
            self.tests.remove(test)

    def chain(self, stack: Stack) -> list[Candidate]:
        """The candidates of a staged stack, bottom first."""
        return [self.staged[stack[: count + 1]] for count in range(len(stack))]

    def forget(self, changes: Iterable[str]) -> None:
        """Forget every stack that contains one of these changes."""
        gone = set(changes)
        self.staged = {each: it for each, it in self.staged.items() if gone.isdisjoint(each)}
        self.told = {each for each in self.told if gone.isdisjoint(each)}
        self.clashes = [clash for clash in self.clashes if gone.isdisjoint((*clash.under, clash.change))]
        self.finished = [trial for trial in self.finished if gone.isdisjoint(trial.stack)]
        for test in self.tests:
            test.dropped = test.dropped or not gone.isdisjoint(test.stack)

    def _main_moved(self, tip: str) -> None:
        self.staged.clear()
        self.told.clear()
        self.clashes.clear()
        self.finished = [replace(trial, old=True) for trial in self.finished]
        for test in self.tests:
            test.trial = replace(test.trial, old=True)
        self._doubt()
        self.tip = tip
        self.sound, self.counted, self.doubted, self.refused = None, False, False, 0

    def _doubt(self) -> None:
        """Main leaves a tip that was not found sound: no change is blamed for a failure on it."""
        if not self.sound:
            self.finished = [trial for trial in self.finished if not trial.old or trial.verdict is TrialVerdict.PASSED]
            for test in self.tests:
                test.doubtful = test.doubtful or test.trial.old


@dataclass(frozen=True, slots=True)
class QueueView:
    """A project's queue as one step of the gate sees it."""

    project: Project
    settings: Settings
    trials: KnownTrials


def _verdict(result: CheckResult) -> TrialVerdict:
    return TrialVerdict.PASSED if result.passed else TrialVerdict.FAILED
