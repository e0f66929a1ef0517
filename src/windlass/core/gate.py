"""Which change is next, and what becomes of it. Pure; the landing tick only carries it out."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass

from windlass.core.change import Candidate, Change, ChangeState, CheckResult, Hold
from windlass.core.settings import CheckSettings, Limits

NOT_RUN = (126, 127)
"""Exit codes by which a shell says that there was no such program, or that it is none."""
_WORD = re.compile(r"[^\s;&|()<>'\"]+")


def next_change(queue: Sequence[Change]) -> Change | None:
    """The one under test, else the first in line: by rank, then by turn."""
    under_test = [each for each in queue if each.state is ChangeState.TESTING]
    waiting = [each for each in queue if each.state is ChangeState.QUEUED]
    return min(under_test or waiting, key=place_in_line, default=None)


def place_in_line(change: Change) -> tuple[int, int]:
    """What the line is ordered by."""
    return -change.rank, change.turn


def to_release(queue: Sequence[Change], checks: CheckSettings, *, due: Container[str]) -> list[Change]:
    """Held changes to look at again: the reason is gone, or it is due to find out."""

    def free(change: Change) -> bool:
        if change.hold is Hold.CHECKS and not _knows_no_better(change, checks):
            return bool(checks.command)
        return change.id in due

    return [each for each in queue if each.state is ChangeState.HELD and free(each)]


def _knows_no_better(change: Change, checks: CheckSettings) -> bool:
    """Whether the command that could not be run is still the one in the settings."""
    return any(each.exit_code in NOT_RUN and each.command == checks.command for each in change.checks)


def blames_author(result: CheckResult, candidate: Candidate) -> bool:
    """Whether a failed check speaks against the change: not where its command is missing, unless the change took it."""
    named = {each.removeprefix("./") for each in _WORD.findall(result.command)}
    return result.exit_code not in NOT_RUN or not named.isdisjoint(candidate.files)


def known_result(change: Change, tree: str, checks: CheckSettings) -> CheckResult | None:
    """A result of this very command on this very tree, which need not be asked for again."""
    for result in change.checks:
        if result.passed and result.tree == tree and result.command == checks.command:
            return result
    return None


@dataclass(frozen=True, slots=True)
class Return:
    """It goes back to its author."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """There is no author to mend it; whoever asked is told."""


@dataclass(frozen=True, slots=True)
class Escalate:
    """It went back often enough; a person must look."""


def decide_refusal(change: Change, limits: Limits, *, over: bool = False) -> Return | Refuse | Escalate:
    """What becomes of a change that conflicts or fails its checks; `over`: its author's task has ended."""
    if not change.agent or over:
        return Refuse()
    return Return() if change.returns < limits.returns else Escalate()
