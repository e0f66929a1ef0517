"""A gate broken on purpose, in one way at a time, and what its judge must say."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fakes import FakeGit
from windlass.core.errors import Conflict
from windlass.core.gate import rules
from windlass.core.gate.planner import plan
from windlass.core.gate.stacks import TrialVerdict
from windlass.core.nouns.change import Candidate, Landing
from windlass.core.nouns.project import Project
from windlass.engine.gate import changes, holds, known_trials, record
from windlass.engine.gate import land as landing

Patch = pytest.MonkeyPatch


def land_unchecked(patch: Patch) -> None:
    """A result of another tree is taken for this one's."""

    def known(queue: Any, tree: str, checks: Any, health: Any = None) -> Any:
        return [replace(each, tree=tree) for change in queue for each in change.checks if each.passed]

    patch.setattr(rules, "known_results", known)


def land_what_failed(patch: Patch) -> None:
    """A check that has ended counts, whatever it said."""
    known = rules.known_results

    def passed(*given: Any) -> Any:
        return [replace(each, passed=True) for each in known(*given)]

    patch.setattr(known_trials, "_verdict", lambda _: TrialVerdict.PASSED)
    patch.setattr(rules, "known_results", passed)


def land_more_than_passed(patch: Patch) -> None:
    """A stack lands with one more on top than its test had."""
    results = landing.Gate._results

    def generous(line: Any, trials: Any, *given: Any) -> Any:
        decided = plan(line, trials, *given)
        taller = [trial.stack for trial in trials if trial.stack[:-1] == decided.land and not trial.old]
        return replace(decided, land=taller[0]) if decided.land and taller else decided

    def lower(self: landing.Gate, view: Any, queue: Any, tree: str) -> Any:
        top = next(stack for stack, it in view.trials.staged.items() if it.tree == tree)
        chain = view.trials.chain(top)
        return [found for each in chain for found in results(self, view, queue, each.tree)]

    patch.setattr(landing, "plan", generous)
    patch.setattr(landing.Gate, "_results", lower)


def skip_compare_and_swap(patch: Patch) -> None:
    """Main is moved wherever it is."""

    def move(self: FakeGit, project: Project, candidate: Candidate) -> None:
        self.repositories[project.path].reset(project.main, candidate.commit)

    patch.setattr(FakeGit, "_move", move)
    patch.setattr(FakeGit, "_prove", lambda *_: None)


def call_a_conflict_landed(patch: Patch) -> None:
    """When main has moved, the changes are said to have landed all the same."""

    land = FakeGit.land

    async def said(self: FakeGit, project: Project, *stack: Candidate) -> Landing:
        try:
            return await land(self, project, *stack)
        except Conflict:
            top = stack[-1]
            return Landing(
                main=project.main,
                before=top.before,
                after=top.commit,
                tree=top.tree,
                commits=top.commits,
                files=top.files,
                landed_at=0.0,
                top=top.top,
                proof=top.proof,
            )

    patch.setattr(FakeGit, "land", said)


def keep_stale_trials(patch: Patch) -> None:
    """What was found on a tip that main has left is taken for what is true of the new one."""

    def moved(self: known_trials.KnownTrials, tip: str) -> None:
        self.tip, self.sound = tip, None

    patch.setattr(known_trials.KnownTrials, "_main_moved", moved)


def forget_what_landed(patch: Patch) -> None:
    """A landing that a crash kept from being recorded is never recorded."""

    async def never(self: holds.Holds, project: Project, change: Any) -> bool:
        return False

    patch.setattr(holds.Holds, "landed_before", never)


def move_unguarded(patch: Patch) -> None:
    """Main moves while somebody says that it must not."""
    begin = landing.Gate.__init__

    def careless(self: landing.Gate, *given: Any, **named: Any) -> None:
        begin(self, *given, **named)
        self.moves = defaultdict(asyncio.Lock)

    patch.setattr(landing.Gate, "__init__", careless)


def look_at_each_alone(patch: Patch) -> None:
    """A change that was given up lands with the others of its stack: nobody looks before main moves."""
    chosen = record.GateRecord.chosen

    async def some(self: record.GateRecord, stack: Any, proof: Any) -> bool:
        for change in stack:
            await chosen(self, [change], proof)
        return True

    patch.setattr(record.GateRecord, "chosen", some)


def give_up_what_landed(patch: Patch) -> None:
    """A change whose landing is not recorded yet can be given up."""

    async def may(*_: Any) -> None:
        return None

    patch.setattr(changes.Changes, "must_not_have_landed", may)


def blame_for_a_red_main(patch: Patch) -> None:
    """Who fails goes back, and nobody looks at main."""
    patch.setattr(landing.Gate, "_is_main_to_blame", lambda *_: False)


def blame_for_a_former_main(patch: Patch) -> None:
    """What failed on a main that was never found sound counts when main has moved on."""
    patch.setattr(known_trials.KnownTrials, "_doubt", lambda _: None)


def land_on_a_red_main(patch: Patch) -> None:
    """What does not mend a red main goes on as if it were green."""
    patch.setattr(rules, "may_repair", lambda *_: True)


GATE_MUTANTS: dict[Callable[[Patch], None], str] = {
    land_unchecked: r"I1: main moved to .*, whose tree no check has passed on",
    land_what_failed: r"I1: main moved to .*, whose tree no check has passed on",
    land_more_than_passed: r"I1: main moved to .*, whose tree no check has passed on",
    skip_compare_and_swap: r"I2: main moved from .*, which does not stand on it",
    call_a_conflict_landed: r"I2 history of main|end: t\d+ is done, and main never had",
    keep_stale_trials: r"trouble in land: main has moved to|red: c\d+ goes back to its author",
    forget_what_landed: r"end: main moved to .*, and no change has landed",
    move_unguarded: r"line: (c\d+ lands|main of .* moves), although|end: main moved to .*, and no change has landed",
    look_at_each_alone: r"line: c\d+ lands, although it is (closed|held)",
    give_up_what_landed: r"end: main moved to .*, and no change has landed",
    blame_for_a_red_main: r"red: c\d+ goes back to its author",
    blame_for_a_former_main: r"red: c\d+ goes back to its author",
    land_on_a_red_main: r"red: ",
}
"""Ways to break the gate, and what is said about each where much presses on it."""
