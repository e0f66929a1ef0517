"""Doing: one process life of an agent, from its intent to its outcome."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from enum import StrEnum

from windlass.core.errors import NotAllowed
from windlass.core.nouns.change import CheckResult


class Outcome(StrEnum):
    """How a run ended."""

    DONE = "done"
    ASKED = "asked"
    FAILED = "failed"
    CRASHED = "crashed"
    STOPPED = "stopped"
    EXHAUSTED = "exhausted"


class TroubleKind(StrEnum):
    """Why a run could not go on; each kind has its own remedy."""

    THROTTLE = "throttle"
    """Too many requests at once: the same again in a while."""
    OVERLOAD = "overload"
    """The model's servers have no room: the same again in a while."""
    QUOTA = "quota"
    """The account's allowance is used up until a time."""
    AUTH = "auth"
    """Nobody is logged in, or the key is refused: a person must act."""
    BILLING = "billing"
    """There is no money left: a person must act."""
    CONTEXT = "context"
    """The conversation is too long for the model: go on in a new one."""
    LOST = "lost"
    """The conversation is not there any more: go on in a new one."""
    ERROR = "error"
    """The program says that it failed, in words that we do not know."""
    STALL = "stall"
    """It said nothing for too long, so we ended it."""
    RUNAWAY = "runaway"
    """It took more time or more model calls than it may, so we ended it."""


@dataclass(frozen=True, slots=True)
class RunTrouble:
    """A trouble that a run met, in the words of whoever noticed it."""

    kind: TroubleKind
    words: str = ""
    until: float | None = None
    """When it is over, where that is known."""


class Cause(StrEnum):
    """Why a run was started."""

    TASK = "task"
    MAIL = "mail"
    CALL = "call"
    """Someone wrote to it while it had nothing to do: what they want is its task now."""
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
    cached_tokens: int = 0
    """Tokens of the input that the model's server had cached."""
    calls: int = 0
    tool_uses: int = 0
    """How often a tool was used: a command, an edit, a search, or a tool of a server."""

    def __add__(self, other: Usage) -> Usage:
        names = (count.name for count in fields(self))
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in names})

    def __neg__(self) -> Usage:
        return Usage(**{count.name: -getattr(self, count.name) for count in fields(self)})

    @property
    def unpriced(self) -> bool:
        """Whether a model was asked at an unknown price."""
        return not self.cost_usd and bool(self.input_tokens or self.output_tokens or self.calls)


@dataclass(frozen=True, slots=True)
class Cost:
    """What some runs have cost together, as far as that is known."""

    dollars: float = 0.0
    unpriced: int = 0
    """How many of them asked a model at an unknown price."""

    def __add__(self, usage: Usage) -> Cost:
        return Cost(self.dollars + usage.cost_usd, self.unpriced + usage.unpriced)

    @property
    def known(self) -> float | None:
        """The dollars; None if no price is known."""
        return None if self.unpriced and not self.dollars else self.dollars


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
    sandbox: str = ""
    """The program of its sandbox, such as `bubblewrap`; nothing: it has the user's own rights."""
    model: str = ""
    """The model it works with: as its provider tells, or else as its agent was told to."""
    trouble: RunTrouble | None = None
    """The trouble it is in, or ended with."""
    outcome: Outcome | None = None
    reason: str = ""
    evidence: tuple[str, ...] = ()
    """The facts that the outcome rests on."""
    result: str = ""
    exit_code: int | None = None
    odd: tuple[str, ...] = ()
    """What is strange about its output."""
    cut: int = 0
    """How many bytes of output came before the first byte of its file; 0 unless the file was emptied or replaced."""
    usage: Usage = field(default_factory=Usage)
    checked: CheckResult | None = None
    """What the project's checks last said about its commits, because its agent asked."""
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
