"""Where: a repository and what we remember about it."""

from __future__ import annotations

from dataclasses import dataclass


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

    @property
    def paused(self) -> str:
        """Why nothing lands; nothing if something may."""
        if self.paused_at is None:
            return ""
        return "the queue is paused" + (f": {self.pause}" if self.pause else "")
