"""What: one piece of work, and the steps it may take."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from windlass.core.errors import NotAllowed


class TaskState(StrEnum):
    OPEN = "open"
    ACTIVE = "active"
    WAITING = "waiting"
    LANDING = "landing"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Mode(StrEnum):
    """What a task wants of its agent. Its prompt is made for that."""

    EXECUTE = "execute"
    PLAN = "plan"
    REFINE = "refine"
    REVIEW = "review"

    @property
    def writes(self) -> bool:
        """Whether it ends in commits."""
        return self is Mode.EXECUTE


_ENDS = (TaskState.DONE, TaskState.FAILED, TaskState.CANCELLED)

_STEPS: dict[TaskState, tuple[TaskState, ...]] = {
    TaskState.OPEN: (TaskState.ACTIVE, TaskState.FAILED, TaskState.CANCELLED),
    TaskState.ACTIVE: (TaskState.WAITING, TaskState.LANDING, *_ENDS),
    TaskState.WAITING: (TaskState.ACTIVE, TaskState.DONE, TaskState.CANCELLED),
    TaskState.LANDING: (TaskState.ACTIVE, TaskState.WAITING, *_ENDS),
    TaskState.FAILED: (TaskState.CANCELLED,),
}
"""Done and cancelled are final. A failed task waits for a person, who may cancel it. A waiting task becomes done
only if it is a review, which waits for answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One piece of work. A task with children is a phase; there is no second noun."""

    id: str
    project: str
    title: str
    brief: str = ""
    parent: str = ""
    needs: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """The files, folders or patterns that it will change, as far as its giver knows."""
    agent: str = ""
    reviews: str = ""
    """The change that it reviews; nothing: it is not a review."""
    wants: Mode = Mode.EXECUTE
    """The mode that its giver wants; but see `mode`."""
    state: TaskState = TaskState.OPEN
    reason: str = ""
    """Why it is where it is, in words for people."""
    created_at: float = 0.0
    ended_at: float | None = None

    @property
    def mode(self) -> Mode:
        """What its agent is to do. A task with a change to review is a review."""
        return Mode.REVIEW if self.reviews else self.wants

    @property
    def ended(self) -> bool:
        return self.state in _ENDS

    def move(self, to: TaskState, *, now: float, reason: str = "") -> Task:
        """Return this task one step further, or refuse."""
        if to not in _STEPS.get(self.state, ()):
            raise NotAllowed(f"Task {self.id} cannot go from {self.state} to {to}.")
        return replace(self, state=to, reason=reason, ended_at=now if to in _ENDS else None)


SHORT_TITLE = 100


def title_of(text: str) -> str:
    """What to call a task that begins with these words: their first line, shortened."""
    words = " ".join(next((line for line in text.splitlines() if line.strip()), "A message").replace("\0", "").split())
    return words if len(words) <= SHORT_TITLE else f"{words[: SHORT_TITLE - 1]}…"
