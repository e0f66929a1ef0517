"""What the gate knows of one project's line since main last moved. Memory only: all of it can be found out again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from windlass.core.gate.stacks import Clash, Stack, Trial, TrialVerdict, rebase
from windlass.core.nouns.change import Candidate, CheckResult


@dataclass(slots=True, eq=False)
class RunningCheck:
    """A check that is under way."""

    began: Stack
    """What was put together for it."""
    trial: Trial
    """What it is now: those below may have landed since."""
    dropped: bool = False
    """Nobody waits for its verdict any more."""
    doubtful: bool = False
    """What it was put on may have been red itself, and nobody will find out: if it fails, that says nothing."""

    @property
    def stack(self) -> Stack:
        return self.trial.stack


@dataclass(slots=True)
class KnownTrials:
    """Stacks that were put together, and what is known of them, all on one tip of main."""

    tip: str = ""
    heads: dict[str, str] = field(default_factory=dict)
    staged: dict[Stack, Candidate] = field(default_factory=dict)
    """The candidate on top of each stack."""
    clashes: list[Clash] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)
    tests: list[RunningCheck] = field(default_factory=list)
    told: set[Stack] = field(default_factory=set)
    """Stacks whose stored results are among the trials."""
    sound: bool | None = None
    """Whether the tip itself passes the checks; None while nobody knows."""
    looking: bool = False
    """Whether the tip is being tested."""
    doubted: bool = False
    """Whether so much failed on a sound tip that it was tested once more."""
    refused: int = 0
    """How many changes have gone back since something landed here."""
    settings: object = None
    """What all of this was found out with."""
    alone: bool = False
    """Something was in the way of a stack: until one has landed, each is tried by itself."""

    def use(self, settings: object) -> None:
        """What was found out with other settings does not count."""
        if settings != self.settings:
            self.settings, self.tip = settings, ""

    def follow(self, tip: str, heads: Mapping[str, str]) -> None:
        """Main may have moved without us; changes may have left, or were brought again: `heads` says what, and when."""
        if tip != self.tip:
            self._main_moved(tip)
        other = {each for each, head in self.heads.items() if heads.get(each) != head}
        self.heads = dict(heads)
        if other:
            self.forget(other)

    def landed(self, stack: Stack, tip: str) -> None:
        """Main is now where this stack ended. What stands on it stays what it is."""
        size = len(stack)
        self.staged = {each[size:]: it for each, it in self.staged.items() if each[:size] == stack and each != stack}
        self.told = {each[size:] for each in self.told if each[:size] == stack and each != stack}
        over = [clash for clash in self.clashes if clash.under[:size] == stack and clash.under != stack]
        self.clashes = [Clash(under=each.under[size:], change=each.change) for each in over]
        self.trials = [*rebase(self.trials, stack)]
        for test in self.tests:
            moved = rebase([test.trial], stack)
            test.trial, test.dropped = (moved[0], test.dropped) if moved else (test.trial, True)
        self._doubt()
        self.tip = tip
        self.alone = self.doubted = False
        self.sound, self.refused = True, 0

    def known(self) -> list[Trial]:
        """All trials, those that have ended and those under way."""
        return [*self.trials, *(test.trial for test in self.tests if not test.dropped)]

    def tell(self, stack: Stack, results: Iterable[CheckResult]) -> bool:
        """Take stored results of a stack's tree for trials, once. True: there were some."""
        if stack in self.told:
            return False
        self.told.add(stack)
        found = [Trial(stack=stack, verdict=_verdict(result)) for result in results]
        self.trials += found
        return bool(found)

    def ended(self, test: RunningCheck, result: CheckResult) -> None:
        """A check has said something."""
        if test.dropped or (test.doubtful and not result.passed):
            return
        self.trials.append(replace(test.trial, verdict=_verdict(result)))
        if not test.trial.old:
            self.told.add(test.stack)  # what is stored of it now is among the trials

    def pardon(self) -> None:
        """Main itself is red: whatever failed on it says nothing about anyone."""
        self.trials = [trial for trial in self.trials if trial.verdict is TrialVerdict.PASSED]
        for test in self.tests:
            test.dropped = True

    def over(self, test: RunningCheck) -> None:
        """A check is not under way any more. One that is broken off before its first step says so only here."""
        if test in self.tests:
            self.tests.remove(test)

    def chain(self, stack: Stack) -> list[Candidate]:
        """The candidates of a stack that was put together, bottom first."""
        return [self.staged[stack[: count + 1]] for count in range(len(stack))]

    def forget(self, changes: Iterable[str]) -> None:
        """Whatever these were part of says nothing any more."""
        gone = set(changes)
        self.staged = {each: it for each, it in self.staged.items() if gone.isdisjoint(each)}
        self.told = {each for each in self.told if gone.isdisjoint(each)}
        self.clashes = [clash for clash in self.clashes if gone.isdisjoint((*clash.under, clash.change))]
        self.trials = [trial for trial in self.trials if gone.isdisjoint(trial.stack)]
        for test in self.tests:
            test.dropped = test.dropped or not gone.isdisjoint(test.stack)

    def _main_moved(self, tip: str) -> None:
        self.staged.clear()
        self.told.clear()
        self.clashes.clear()
        self.trials = [replace(trial, old=True) for trial in self.trials]
        for test in self.tests:
            test.trial = replace(test.trial, old=True)
        self._doubt()
        self.tip = tip
        self.sound, self.doubted, self.refused = None, False, 0

    def _doubt(self) -> None:
        """Main leaves a tip that was not found sound: nobody is blamed for what has failed, or fails, on it."""
        if not self.sound:
            self.trials = [trial for trial in self.trials if not trial.old or trial.verdict is TrialVerdict.PASSED]
            for test in self.tests:
                test.doubtful = test.doubtful or test.trial.old


def _verdict(result: CheckResult) -> TrialVerdict:
    return TrialVerdict.PASSED if result.passed else TrialVerdict.FAILED
