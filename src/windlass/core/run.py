"""Doing: one process life of an agent, from its intent to its outcome."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from windlass.core.errors import NotAllowed


class Outcome(StrEnum):
    """How a run ended."""

    DONE = "done"
    ASKED = "asked"
    FAILED = "failed"
    CRASHED = "crashed"
    STOPPED = "stopped"
    EXHAUSTED = "exhausted"


class Cause(StrEnum):
    """Why a run was started."""

    TASK = "task"
    MAIL = "mail"
    REMINDER = "reminder"


@dataclass(frozen=True, slots=True)
class Identity:
    """A process that can't be mistaken for a later one with the same pid."""

    pid: int
    started: int
    """Clock ticks after boot."""
    boot: str
    """The kernel's boot id."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run has used, as far as its provider tells."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cost_usd + other.cost_usd,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One process life. Without an identity it is an intent; without an outcome it is live."""

    id: str
    agent: str
    task: str
    number: int
    """1 for an agent's first run, then 2, 3 …"""
    provider: str
    cause: Cause = Cause.TASK
    session: str = ""
    """The provider's own conversation id, carried from run to run."""
    base: str = ""
    """The commit of main that the agent's branch started from."""
    identity: Identity | None = None
    stopping: str = ""
    """Why we asked it to stop, if we did: an exit after that is not a crash."""
    said: str = ""
    """The signal, as JSON, when it was given by a command instead of a file."""
    outcome: Outcome | None = None
    reason: str = ""
    evidence: tuple[str, ...] = ()
    """The facts that the outcome rests on."""
    result: str = ""
    """What the agent said at the end."""
    exit_code: int | None = None
    usage: Usage = field(default_factory=Usage)
    starting_at: float = 0.0
    started_at: float | None = None
    ended_at: float | None = None

    @property
    def live(self) -> bool:
        return self.outcome is None

    def begin(self, identity: Identity, *, base: str, now: float) -> Run:
        """Return this run with its process known."""
        if not self.live:
            raise NotAllowed(f"Run {self.id} has ended; it cannot begin again.")
        return replace(self, identity=identity, base=base, started_at=now)

    def end(
        self,
        outcome: Outcome,
        *,
        now: float,
        reason: str = "",
        evidence: tuple[str, ...] = (),
        exit_code: int | None = None,
        result: str = "",
    ) -> Run:
        """Return this run with its outcome, which is final."""
        if not self.live:
            raise NotAllowed(f"Run {self.id} has ended already: {self.outcome}.")
        return replace(
            self,
            outcome=outcome,
            reason=reason,
            evidence=evidence,
            exit_code=exit_code,
            result=result or self.result,
            ended_at=now,
        )


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some bytes of a run's output. The offset says where they stand, so none is kept twice."""

    run: str
    offset: int
    at: float
    content: bytes

    @property
    def end(self) -> int:
        return self.offset + len(self.content)
