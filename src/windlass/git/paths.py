"""Paths of hubs, worktrees and git's own files below the daemon's home."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from windlass.core.address import check_name
from windlass.core.errors import BadInput
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.project import Project

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")


@dataclass(frozen=True, slots=True)
class HubPaths:
    """Paths. A project's id comes from a file in its repository, so it is checked before it becomes one."""

    home: Path

    def hub(self, project: Project) -> Path:
        return self.home / "hubs" / f"{_checked(project.id)}.git"

    def worktrees(self, project: Project) -> Path:
        return self.home / "worktrees" / _checked(project.id)

    def worktree(self, project: Project, agent: Agent) -> Path:
        return self.worktrees(project) / key(agent)

    def spares(self, project: Project) -> Path:
        """Checkouts of main that are kept ready for new worktrees."""
        return self.worktrees(project) / ".spares"

    def index(self, project: Project, agent: Agent) -> Path:
        """Our own index of an agent's worktree, whatever the agent does to its own."""
        return self.hub(project) / "windlass" / "indexes" / key(agent)

    def checkout_index(self, project: Project) -> Path:
        """Our own index of the user's checkout; theirs is never touched."""
        return self.hub(project) / "windlass" / "checkout"

    def quick_look(self, project: Project, agent: Agent) -> Path:
        """Objects of the last quick look at an agent's work."""
        return self.hub(project) / "windlass" / "glimpses" / key(agent)

    def given(self, project: Project, agent: Agent) -> Path:
        """A list of the files that an agent's worktree was given when it was new."""
        return self.hub(project) / "windlass" / "given" / key(agent)

    def hidden(self, project: Project) -> Path:
        """A list of paths in worktrees that are not work."""
        return self.hub(project) / "windlass" / "hidden"

    def move(self, project: Project) -> Path:
        """The move of the user's checkout that was begun, and may be half done."""
        return self.hub(project) / "windlass" / "move"

    def aside(self, project: Project) -> Path:
        """A list of refs that were taken out of the hub because their objects are gone."""
        return self.hub(project) / "windlass" / "aside"

    def damaged(self, project: Project) -> Path:
        """Object files that are damaged and could not be mended."""
        return self.hub(project) / "windlass" / "damaged"

    def settings(self, project: Project, agent: Agent) -> Path:
        """The file that an agent's git takes for the user's own settings."""
        return self.home / "gitconfig" / _checked(project.id) / key(agent) / "config"


def key(agent: Agent) -> str:
    """An agent's name as one part of a path or a ref."""
    check_name(agent.name)
    if not agent.instance:
        return agent.name
    if check_name(agent.instance) == "lock":
        raise BadInput("An instance cannot be called lock: git forbids branches that end so.", hint="Choose another.")
    return f"{agent.name}.{agent.instance}"


def _checked(project: str) -> str:
    if not _ID.fullmatch(project):
        raise BadInput(f"{project[:80]!r} is not a project's id.", hint="Run `windlass init` to write a new one.")
    return project
