"""The workdir of a run: its agent's worktree, or a folder with one worktree of each repository."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from windlass.core.nouns.agent import Agent
from windlass.core.nouns.project import Project


@dataclass(frozen=True, slots=True)
class Site:
    """An agent, and the projects that it works in, its own first."""

    agent: Agent
    projects: tuple[Project, ...]

    @property
    def project(self) -> Project:
        return self.projects[0]

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each repository in the agent's folder."""
        return tuple(project.path.rstrip("/").rpartition("/")[2] for project in self.projects)

    def folder(self, home: str, worktree: str) -> str:
        """The folder in which its runs start: the only worktree, or a folder that leads to all."""
        return worktree if len(self.projects) == 1 else f"{home}/workdirs/{self.agent.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Briefing:
    """The paths of a run's files."""

    prompt: str
    signal: str
    files: Mapping[str, str]
    """Where each provider file was written, by option name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorktreeState:
    """The state of an agent's worktree, read without trusting anything in it."""

    head: str
    """The commit its branch is at, which is in the hub now."""
    branch: str
    """The branch that is checked out there, or nothing."""
    commits: int
    """Commits of its branch that are not in main."""
    changed: tuple[str, ...] = ()
    """Tracked files with uncommitted changes."""
    untracked: tuple[str, ...] = ()
    snapshot: str = ""
    """The commit that holds the tree as it is, under a hidden ref of the hub."""
    holes: tuple[str, ...] = ()
    """All that the hub does not have, each with the reason: a refused commit, nested repositories, files too large."""
    unsaved: tuple[str, ...] = ()
    """Of these, files that are not committed either."""
    refused: str = ""
    """Why the branch's last commit there could not be taken in: the head is an older one. Nothing if it was."""

    @property
    def left(self) -> tuple[str, ...]:
        """All files that are not committed; with the reason where the snapshot can't hold one."""
        stuck = {hole.partition(": ")[0]: hole for hole in self.unsaved}
        return tuple(dict.fromkeys(stuck.get(file, file) for file in (*self.changed, *self.untracked, *stuck)))

    @property
    def clean(self) -> bool:
        return not self.left
