"""Where: a repository and what we remember about it."""

from __future__ import annotations

from dataclasses import dataclass

from windlass.core.display import age
from windlass.core.nouns.change import CheckResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """One repository of the user's. `id` is the uuid in its settings file."""

    id: str
    name: str
    path: str
    """The top folder of the user's checkout."""
    main: str
    """The branch that changes land on."""
    added_at: float = 0.0
    paused_at: float | None = None
    """Since when nothing lands, because a person said so."""
    pause: str = ""
    """Why, in their words."""
    health: CheckResult | None = None
    """What the checks last said about main itself."""
    forgotten_at: float | None = None
    """Since when a person does not want to see it any more."""
    hub_deleted_at: float | None = None
    """When the hub of a forgotten project was deleted, with all that was saved in it."""

    @property
    def paused(self) -> str:
        """Why nothing lands; nothing if something may."""
        if self.paused_at is None:
            return ""
        return "the queue is paused" + (f": {self.pause}" if self.pause else "")

    @property
    def red(self) -> str:
        """Why main is red; nothing if it is not known to be."""
        if self.health is None or self.health.passed:
            return ""
        return f"{self.main} is red: {self.health.reason} ({self.health.command})"

    @property
    def forgotten(self) -> str:
        """Why nothing goes on there for good; nothing if it may."""
        return "" if self.forgotten_at is None else f"its project {self.name} was forgotten"

    @property
    def mending(self) -> str:
        """The title of the task that makes main green again, and of its change."""
        return f"Mend {self.main}: its checks fail"


@dataclass(frozen=True, slots=True)
class Absence:
    """Why a project can't be worked on: its repository is gone, or a person has forgotten it."""

    reason: str
    since: float | None = None
    """When that was noticed, if it was."""

    def told(self, now: float) -> str:
        """The reason with its age, for eyes."""
        return self.reason if self.since is None else f"{self.reason} (noticed {age(now - self.since)} ago)"


def halt(project: Project, absence: Absence | None, now: float) -> str:
    """Why changes wait; nothing if they may land."""
    return absence.told(now) if absence else project.paused or project.red


def standing(project: Project, absence: Absence | None) -> str:
    """How a project stands, in one word."""
    if project.forgotten or absence:
        return "forgotten" if project.forgotten else "gone"
    return "paused" if project.paused else "red" if project.red else "ready"


def gone(path: str, *, folder: bool) -> str:
    """What is said everywhere about a project whose repository is not at its path any more."""
    return f"its repository {path} is gone" + (": the folder is there, but no git repository" if folder else "")
