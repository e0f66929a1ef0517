"""Rules of the gate: the queue for the planner, known results, releases and refusals."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from enum import Enum

from windlass.core.gate.command_words import CommandWords
from windlass.core.gate.stacks import QueuedChange, Rates, Rules, Trial, TrialVerdict, measure
from windlass.core.nouns.change import Change, ChangeState, CheckResult, Hold
from windlass.core.nouns.counted_tests import Tally
from windlass.core.nouns.project import Project
from windlass.core.settings.schema import CheckSettings, GateSettings, Limits

NOT_RUN = (126, 127)
"""Exit codes of a shell for a program that is missing, or can't be executed."""
MOST_RUNNERS = 8
ALIKE = 3


def entries(queue: Sequence[Change]) -> list[QueuedChange]:
    """The queue as the planner sees it."""
    return [_entry(change) for change in queue]


def _entry(change: Change) -> QueuedChange:
    proven = any(check.passed and check.stack == (change.id,) for check in change.checks)
    files = change.candidate.files if change.candidate else ()
    parts = frozenset(file.partition("/")[0] for file in files)
    return QueuedChange(change=change.id, turn=change.turn, rank=change.rank, proven=proven, parts=parts)


def place_in_queue(change: Change) -> tuple[int, int]:
    """The sort key of the queue."""
    return -change.rank, change.turn


def may_repair(change: Change, project: Project) -> bool:
    """Whether a change may go on while main is red: the repair that was asked for, or a person's own change."""
    return not change.agent or change.title == project.mending


def fail_alike(trials: Iterable[Trial]) -> bool:
    """Whether so many changes fail alone, and none passes, that main may be the reason."""
    known = [trial for trial in trials if not trial.old and trial.verdict]
    alone = {trial.stack for trial in known if trial.verdict is TrialVerdict.FAILED and len(trial.stack) == 1}
    return len(alone) >= ALIKE and not any(trial.verdict is TrialVerdict.PASSED for trial in known)


def tests_of(past: Sequence[Change], health: CheckResult | None) -> Tally | None:
    """How many tests ran when main was last green: at a landing (`past`: the newest first), or tested by itself."""
    landings = ((change.checks, change.landing) for change in past if change.landing)
    checks, landing = next(landings, ((), None))
    if health and health.passed and health.tests and health.started_at > (landing.landed_at if landing else -1.0):
        return health.tests
    return next((check.tests for check in checks if landing and check.passed and check.tree == landing.tested), None)


def touches_tests(files: Iterable[str]) -> bool:
    """Whether some of these files are tests, as far as their names tell."""
    return any("test" in file.lower() or "spec" in file.lower() for file in files)


def rates(past: Sequence[Change]) -> Rates:
    """Estimate how often changes are bad, and checks fail by chance."""
    results = [result for change in past for result in change.checks]
    green = {(result.tree, result.command) for result in results if result.passed}
    return measure(
        landed=sum(change.landing is not None for change in past),
        rejected=sum(change.failures for change in past),
        runs=len(results),
        flaked=sum(not result.passed and (result.tree, result.command) in green for result in results),
    )


def rules(settings: GateSettings, *, processors: int, alone: bool) -> Rules:
    """The planner's rules, from the settings."""
    runners = settings.runners or max(1, min(MOST_RUNNERS, processors // 2))
    made = Rules(runners=runners, strict=settings.strict, retries=settings.retries, partition=settings.partition)
    return replace(made, largest=1) if alone else made


def to_release(queue: Sequence[Change], checks: CheckSettings, *, due: Container[str]) -> list[Change]:
    """Held changes to look at again: the reason is gone, or the next look is due."""

    def free(change: Change) -> bool:
        same = any(check.exit_code in NOT_RUN and check.command == checks.command for check in change.checks)
        return bool(checks.command) if change.hold is Hold.CHECKS and not same else change.id in due

    return [change for change in queue if change.state is ChangeState.HELD and free(change)]


def blames_author(result: CheckResult, files: Iterable[str]) -> bool:
    """Whether a failed check is the changes' fault: not where its command is missing, unless they removed it."""
    return result.exit_code not in NOT_RUN or any(map(CommandWords(result.command).names, files))


def known_results(
    queue: Sequence[Change], tree: str, checks: CheckSettings, health: CheckResult | None = None
) -> list[CheckResult]:
    """Results of this command on this tree, so that it need not run again.

    Without commands that could not run, and failures before main was last tested: main may have been the reason.
    """
    since = health.started_at if health else -1.0
    said = (result for change in queue for result in change.checks)
    return [
        result
        for result in dict.fromkeys(said)
        if (result.tree, result.command) == (tree, checks.command)
        and (result.passed or (result.exit_code not in NOT_RUN and result.started_at > since))
    ]


class AfterRefusal(Enum):
    """The next step of a change that conflicts or fails its checks."""

    RETURN = "return"
    """It goes back to its author."""
    CLOSE = "close"
    """It has no author who could repair it; whoever asked is told."""
    ESCALATE = "escalate"
    """It went back often enough; a person must look."""


def decide_refusal(change: Change, limits: Limits, *, over: bool = False, unfit: bool = False) -> AfterRefusal:
    """Choose what happens to a change that conflicts or fails its checks.

    `over`: its author's task has ended; `unfit`: it could not land on any main, which is said to its author once.
    """
    if not change.agent or over:
        return AfterRefusal.CLOSE
    allowed = min(1, limits.returns) if unfit else limits.returns
    return AfterRefusal.RETURN if change.returns < allowed else AfterRefusal.ESCALATE
