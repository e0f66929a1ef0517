"""Troubles of runs that are not the work itself: when to try again, when to ask a person, when to end a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from windlass.core.display import age
from windlass.core.nouns.run import Outcome, Run, RunTrouble, TroubleKind
from windlass.core.settings.schema import Limits

NO_ROOM = frozenset({TroubleKind.THROTTLE, TroubleKind.OVERLOAD})
"""Troubles that pass: the agent is tried again a while later."""

FOR_A_PERSON: Mapping[TroubleKind, str] = {
    TroubleKind.AUTH: "Log its program in, or put its key into the daemon's environment; then answer, and it goes on.",
    TroubleKind.BILLING: "See to its account; then answer, and it goes on.",
}
"""Troubles that only a person can fix, and how."""

GO_ON = "Your last run was cut short by the model's server, not by you. Your files are as you left them. Go on."

_MEANING: Mapping[TroubleKind, str] = {
    TroubleKind.THROTTLE: "too many requests",
    TroubleKind.OVERLOAD: "the model's server is overloaded",
    TroubleKind.QUOTA: "the usage limit is reached",
    TroubleKind.AUTH: "not logged in",
    TroubleKind.BILLING: "no credit left",
    TroubleKind.CONTEXT: "the conversation became too long",
    TroubleKind.LOST: "its session is not there any more",
    TroubleKind.ERROR: "its program failed",
    TroubleKind.STALL: "it stalled",
    TroubleKind.RUNAWAY: "it ran away",
}
_BAD = (Outcome.CRASHED, Outcome.FAILED)

_FIRST_WAIT, _LONGEST_WAIT = 30.0, 900.0
_FIRST_REST, _LONGEST_REST = 5.0, 300.0
_UNKNOWN_QUOTA = 3600.0
"""Seconds after which an account is tried again whose reset nobody told us."""


def described(trouble: RunTrouble) -> str:
    """The meaning of a trouble, and the program's own words."""
    return f"{_MEANING[trouble.kind]}: {trouble.words}" if trouble.words else _MEANING[trouble.kind]


def named(run: Run) -> str:
    """Why an agent rests, in a few words."""
    return _MEANING[run.trouble.kind] if run.trouble else f"a run that {run.outcome}"


def tries_before(runs: Sequence[Run]) -> int:
    """How many runs at the end of this history did not end well, by no fault of a model's server."""
    return sum(not _met_no_room(run) for run in _bad_ones(runs))


def waits_before(runs: Sequence[Run]) -> int:
    """How many of them met a model's server that had no room."""
    return sum(_met_no_room(run) for run in _bad_ones(runs))


def rest_until(runs: Sequence[Run]) -> float | None:
    """When an agent may be woken again after its last run; nothing: at once."""
    latest = runs[-1]
    ended = latest.ended_at or 0.0
    if latest.outcome is Outcome.EXHAUSTED:
        known = latest.trouble.until if latest.trouble else None
        return known if known is not None else ended + _UNKNOWN_QUOTA
    if _met_no_room(latest):
        return ended + min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** (waits_before(runs) - 1))
    tries = tries_before(runs)
    return ended + min(_LONGEST_REST, _FIRST_REST * 2.0 ** (tries - 2)) if tries > 1 else None


def _bad_ones(runs: Sequence[Run]) -> Iterator[Run]:
    """The runs at the end that did not end well; one after which a person was asked is another story."""
    for run in reversed(runs):
        if run.outcome not in _BAD or (run.trouble and run.trouble.kind in FOR_A_PERSON):
            return
        yield run


def _met_no_room(run: Run) -> bool:
    return run.outcome in _BAD and run.trouble is not None and run.trouble.kind in NO_ROOM


@dataclass(frozen=True, slots=True, kw_only=True)
class RunActivity:
    """The age and output of a live run, in seconds that never jump."""

    age: float
    silent: float
    """Since its last output."""
    calls: int
    """Calls of its model."""


def was_halted(run: Run) -> bool:
    """Whether we ended it, or are about to, because of what our clock says."""
    return run.trouble is not None and run.trouble.kind in (TroubleKind.STALL, TroubleKind.RUNAWAY)


def decide_halt(activity: RunActivity, limits: Limits) -> RunTrouble | None:
    """Whether a run that lives should be ended, and why. 0 is no limit."""
    if limits.calls and activity.calls > limits.calls:
        return RunTrouble(TroubleKind.RUNAWAY, f"more than {limits.calls} model calls in one run (limits.calls)")
    if limits.run_minutes and activity.age > limits.run_minutes * 60:
        words = f"more than {age(limits.run_minutes * 60)} in one run (limits.run_minutes)"
        return RunTrouble(TroubleKind.RUNAWAY, words)
    if limits.silent_minutes and activity.silent > limits.silent_minutes * 60:
        return RunTrouble(TroubleKind.STALL, f"no output for {age(limits.silent_minutes * 60)} (limits.silent_minutes)")
    return None
