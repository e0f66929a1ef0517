"""What gets in a run's way besides the work itself: whether to try again, after which rest, or whom to ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from windlass.core.display import age
from windlass.core.nouns.run import Hitch, Outcome, Run, Trouble
from windlass.core.settings.schema import Limits

NO_ROOM = frozenset({Trouble.THROTTLE, Trouble.OVERLOAD})
"""The same again, a while later."""

FOR_A_PERSON: Mapping[Trouble, str] = {
    Trouble.AUTH: "Log its program in, or put its key into the daemon's environment; then answer, and it goes on.",
    Trouble.BILLING: "See to its account; then answer, and it goes on.",
}
"""What only a person can mend, and how."""

GO_ON = "Your last run was cut short by the model's server, not by you. Your files are as you left them. Go on."

_MEANING: Mapping[Trouble, str] = {
    Trouble.THROTTLE: "too many requests",
    Trouble.OVERLOAD: "the model's server is overloaded",
    Trouble.QUOTA: "the usage limit is reached",
    Trouble.AUTH: "not logged in",
    Trouble.BILLING: "no credit left",
    Trouble.CONTEXT: "the conversation became too long",
    Trouble.LOST: "its session is not there any more",
    Trouble.ERROR: "its program failed",
    Trouble.STALL: "it stalled",
    Trouble.RUNAWAY: "it ran away",
}
_BAD = (Outcome.CRASHED, Outcome.FAILED)

_FIRST_WAIT, _LONGEST_WAIT = 30.0, 900.0
_FIRST_REST, _LONGEST_REST = 5.0, 300.0
_UNKNOWN_QUOTA = 3600.0
"""Seconds after which an account is tried again whose reset nobody told us."""


def described(hitch: Hitch) -> str:
    """What it means, and what was said."""
    return f"{_MEANING[hitch.kind]}: {hitch.words}" if hitch.words else _MEANING[hitch.kind]


def named(run: Run) -> str:
    """Why an agent rests, in a few words."""
    return _MEANING[run.hitch.kind] if run.hitch else f"a run that {run.outcome}"


# ── trying again ─────────────────────────────────────────────────────────────────────────────────────────────


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
        known = latest.hitch.until if latest.hitch else None
        return known if known is not None else ended + _UNKNOWN_QUOTA
    if _met_no_room(latest):
        return ended + min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** (waits_before(runs) - 1))
    tries = tries_before(runs)
    return ended + min(_LONGEST_REST, _FIRST_REST * 2.0 ** (tries - 2)) if tries > 1 else None


def _bad_ones(runs: Sequence[Run]) -> Iterator[Run]:
    """The runs at the end that did not end well; one after which a person was asked is another story."""
    for run in reversed(runs):
        if run.outcome not in _BAD or (run.hitch and run.hitch.kind in FOR_A_PERSON):
            return
        yield run


def _met_no_room(run: Run) -> bool:
    return run.outcome in _BAD and run.hitch is not None and run.hitch.kind in NO_ROOM


# ── watching ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """How a live run does, in seconds that never jump."""

    age: float
    silent: float
    """Since its last output."""
    calls: int
    """How often it asked its model."""


def was_halted(run: Run) -> bool:
    """Whether we ended it, or are about to, because of what our clock says."""
    return run.hitch is not None and run.hitch.kind in (Trouble.STALL, Trouble.RUNAWAY)


def decide_halt(pulse: Pulse, limits: Limits) -> Hitch | None:
    """Whether a run that lives should be ended, and why. 0 is no limit."""
    if limits.calls and pulse.calls > limits.calls:
        return Hitch(Trouble.RUNAWAY, f"more than {limits.calls} model calls in one run (limits.calls)")
    if limits.run_minutes and pulse.age > limits.run_minutes * 60:
        return Hitch(Trouble.RUNAWAY, f"more than {age(limits.run_minutes * 60)} in one run (limits.run_minutes)")
    if limits.silent_minutes and pulse.silent > limits.silent_minutes * 60:
        return Hitch(Trouble.STALL, f"no output for {age(limits.silent_minutes * 60)} (limits.silent_minutes)")
    return None
