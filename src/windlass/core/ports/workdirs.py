"""The files that agents and the daemon exchange."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from windlass.core.runs.signal import Signal
from windlass.core.runs.workdir import Briefing


class Workdirs(Protocol):
    """The files of a run: in its folder under our home, and in the agent's worktree."""

    async def brief(
        self,
        run: str,
        worktree: str,
        *,
        prompt: str,
        manifest: Mapping[str, Any],
        inputs: Mapping[str, str],
        files: Mapping[str, str],
        context: Mapping[str, str] | None = None,
    ) -> Briefing:
        """Write the prompt, the provider's files and the worktree's inputs (manifest last); move an old signal away.

        The context holds files that an agent may only read, such as `tasks/t1.md`.
        """
        ...

    async def signal(self, run: str, worktree: str, /) -> Signal | None:
        """The signal given in this run; never follows links."""
        ...

    def signal_places(self, worktree: str, /) -> tuple[str, ...]:
        """The folders in which agents are told to give their signal."""
        ...

    async def gather(self, folder: str, worktrees: Mapping[str, str], /) -> None:
        """Make a folder in which each of these worktrees is found by its name."""
        ...

    def has_mirrors(self, checkout: str, /) -> bool:
        """Whether `windlass init` made a folder for mirrored files in this checkout of the user's."""
        ...

    def shows(self, checkout: str, name: str, text: str, /) -> bool:
        """Whether a mirrored file has just this text."""
        ...

    async def mirror(self, checkout: str, name: str, text: str, /) -> None:
        """Write a mirrored file in one step, so that it can be read at any moment."""
        ...
