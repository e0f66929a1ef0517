"""The files of a repository that define agents, workflows and prompts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from windlass.core.agents.definition import Roster
from windlass.core.workflows.workflow import Workflow


class Library(Protocol):
    """The agents, workflows and prompts of a repository, read from the user's own checkout."""

    @property
    def guarded(self) -> tuple[str, ...]:
        """Files, and folders ending with a slash, that say what agents are and may do."""
        ...

    async def roster(self, checkout: str, /) -> Roster:
        """The agents that are defined there, and what is wrong with its files."""
        ...

    async def workflow(self, file: str, /) -> Workflow:
        """Read a workflow's file. Raises BadInput with all of its mistakes."""
        ...

    async def blocks(self, checkout: str, /) -> Mapping[str, str]:
        """The blocks of prompts, each with what the project adds to it."""
        ...
