"""Where: a repository and what we remember about it."""

from __future__ import annotations

from dataclasses import dataclass

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
    def halt(self) -> str:
        """Why changes wait; nothing if they may land."""
        return self.paused or self.red

    @property
    def mending(self) -> str:
        """The title of the task that makes main green again, and of its change."""
        return f"Mend {self.main}: its checks fail"
