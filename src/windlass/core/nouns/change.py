"""Landing: a branch that wants main, what the checks said, and the receipt."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from windlass.core.errors import NotAllowed
from windlass.core.nouns.counted_tests import Tally


class ChangeState(StrEnum):
    QUEUED = "queued"
    TESTING = "testing"
    LANDED = "landed"
    REJECTED = "rejected"
    HELD = "held"
    CLOSED = "closed"


_ASIDE = (ChangeState.REJECTED, ChangeState.HELD, ChangeState.CLOSED)
_STEPS: dict[ChangeState, tuple[ChangeState, ...]] = {
    ChangeState.QUEUED: (ChangeState.TESTING, *_ASIDE),
    ChangeState.TESTING: (ChangeState.QUEUED, ChangeState.LANDED, *_ASIDE),
    ChangeState.REJECTED: (ChangeState.QUEUED, ChangeState.HELD, ChangeState.CLOSED),
    ChangeState.HELD: (ChangeState.QUEUED, ChangeState.CLOSED),
}


class Hold(StrEnum):
    """What a held change waits for."""

    CHECKS = "checks"
    """The project has no check command yet."""
    CHECKOUT = "checkout"
    """The user's checkout has something in the way."""
    GUARD = "guard"
    """A person must look: it touches what decides how changes are tested, or what is guarded, or tests are gone."""
    HUMAN = "human"
    """A person must look: it was returned too often, or changes how changes are tested."""
    REVIEW = "review"
    """A reviewer objects, or has not looked yet."""
    TROUBLE = "trouble"
    """Something outside failed again and again."""


BY_HAND = "held by hand"
"""How the reason begins where a person has held a change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What one command said about one tree."""

    command: str
    tree: str
    passed: bool
    exit_code: int | None
    seconds: float
    started_at: float
    reason: str = ""
    """In words, when it did not pass: exit code 1, timed out after 600 s …"""
    document: str = ""
    """Where its output is kept."""
    stack: tuple[str, ...] = ()
    """The changes that were tested together, bottom first."""
    tests: Tally | None = None
    """How many tests ran, where the output tells."""
    head: str = ""
    """The commit that was checked, if an agent asked for the check during its run."""
    sandbox: str = ""
    """The program that kept it in a sandbox; nothing if none did."""


class LandingShape(StrEnum):
    """What a landed change looks like in main's history."""

    MERGE = "merge"
    """Its own commits, and one that merges them."""
    SQUASH = "squash"
    """One commit by its author."""
    REBASE = "rebase"
    """Its commits one by one, by their authors; where they can't be replayed to the very same files, one commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A commit that main could move to."""

    commit: str
    tree: str
    before: str
    """What it was made on: the tip of main, or the candidate below it."""
    commits: tuple[str, ...]
    files: tuple[str, ...]
    head: str = ""
    """The change's own last commit."""
    shape: LandingShape = LandingShape.MERGE
    top: str = ""
    """The commit that main moves to when this one lands together with those above it."""
    proof: str = ""
    """The tree of that commit: the one that was tested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """The receipt of a landed change."""

    main: str
    before: str
    after: str
    tree: str
    commits: tuple[str, ...]
    files: tuple[str, ...]
    landed_at: float
    top: str = ""
    """The commit that main moved to, if it landed in a stack; commits below that one were not tested alone."""
    proof: str = ""
    """The tree that passed the checks, if it is that of a whole stack."""
    tests_before: Tally | None = None
    """How many tests ran on main before, where that is known."""

    @property
    def tested(self) -> str:
        """The tree that must have passed the checks."""
        return self.proof or self.tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A branch that wants main."""

    id: str
    project: str
    branch: str
    head: str
    title: str
    agent: str = ""
    task: str = ""
    undoes: str = ""
    """The landed change that this one takes back."""
    state: ChangeState = ChangeState.QUEUED
    hold: Hold | None = None
    reason: str = ""
    returns: int = 0
    """How often it went back to its author."""
    failures: int = 0
    """How often the checks failed because of it."""
    candidate: Candidate | None = None
    checks: tuple[CheckResult, ...] = ()
    """The newest results of tests with this change on top, and the one that it landed on."""
    landing: Landing | None = None
    queued_at: float = 0.0
    turn: int = 0
    """The number of the event that queued it: its place in the queue, whatever the clock does."""
    rank: int = 0
    """Changes with a higher rank go first; a person gives it one."""
    allowed: str = ""
    """The commit that a person has looked at and let pass, although it touches guarded files."""

    @property
    def ended(self) -> bool:
        return self.state in (ChangeState.LANDED, ChangeState.CLOSED)

    @property
    def queued(self) -> bool:
        return self.state is ChangeState.QUEUED

    @property
    def with_author(self) -> bool:
        """Whether only its author can go on with it: it was refused, or is held because that did not help."""
        held = self.hold is Hold.HUMAN and not self.reason.startswith(BY_HAND)
        return self.state is ChangeState.REJECTED or held

    def move(self, to: ChangeState, *, reason: str = "", hold: Hold | None = None) -> Change:
        """Return this change one step further, or refuse."""
        if to not in _STEPS.get(self.state, ()):
            raise NotAllowed(f"Change {self.id} cannot go from {self.state} to {to}.")
        return replace(self, state=to, reason=reason, hold=hold)
