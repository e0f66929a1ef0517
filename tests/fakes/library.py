"""What a repository brings along for its agents, and what makes their worktrees ready, in memory."""

from __future__ import annotations

from collections.abc import Mapping

from windlass.core.agents.definition import Roster
from windlass.core.errors import BadInput
from windlass.core.runs.prompt import BLOCKS, PARTS
from windlass.core.runs.sandbox import Sandbox
from windlass.core.runs.worktree_setup import PreparedWorktree
from windlass.core.settings.schema import WorktreeSettings
from windlass.core.workflows.workflow import Workflow


class FakeLibrary:
    """The `Library` port: a test says which agents there are, by checkout."""

    def __init__(self) -> None:
        self.rosters: dict[str, Roster] = {}
        self.guarded: tuple[str, ...] = ()
        """What no agent may land by itself."""
        self.workflows: dict[str, Workflow] = {}
        """By file."""

    async def roster(self, checkout: str, /) -> Roster:
        return self.rosters.get(checkout, Roster())

    async def workflow(self, file: str, /) -> Workflow:
        if file not in self.workflows:
            raise BadInput(f"{file}: there is no such file.")
        return self.workflows[file]

    async def blocks(self, checkout: str, /) -> Mapping[str, str]:
        del checkout
        return {name: name for name in (*BLOCKS, *PARTS)}


class FakeSetups:
    """The `Setups` port: a test says how making a worktree ready ends."""

    def __init__(self) -> None:
        self.answer = PreparedWorktree()
        self.prepared: list[str] = []
        """Every worktree that was made ready, each time."""

    async def prepare(
        self,
        worktree: str,
        checkout: str,
        agent: str,
        settings: WorktreeSettings,
        /,
        *,
        key: str,
        environment: Mapping[str, str],
        sandbox: Sandbox | None,
    ) -> PreparedWorktree:
        del checkout, agent, settings, key, environment, sandbox
        self.prepared.append(worktree)
        return self.answer
