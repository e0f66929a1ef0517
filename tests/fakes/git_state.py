"""What every part of the fake git stands on: repositories, hubs and worktrees in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from fakes.archive import FakeArchive
from fakes.objects import Objects
from fakes.repository import Edits, FakeHub, FakeRepository, FakeWorktree
from windlass.core.errors import BadInput, NotFound
from windlass.core.nouns.project import Project

Pause = Callable[[str], Awaitable[None]]
"""Awaited between two effects of one call: there, others may have a turn, or all may end."""

LOST = "refs/windlass/lost/"
"""Tips of main that a person has rewritten since."""


async def no_pause(name: str) -> None:
    """Go on at once."""
    del name


class GitState:
    """The repositories of people, a hub for each project, and the worktrees of agents."""

    def __init__(self, home: str, *, now: Callable[[], float], pause: Pause = no_pause) -> None:
        self.home = home
        self.now = now
        self.pause = pause
        self.objects = Objects()
        self.repositories: dict[str, FakeRepository] = {}
        """The user's, by path."""
        self.worktrees: dict[str, FakeWorktree] = {}
        """Agents', by path."""
        self.hubs: dict[str, FakeHub] = {}
        self.archive = FakeArchive(self.objects, self.repositories, self.hubs)
        """What is kept for later, and the proof of what landed."""
        self._locks: dict[str, asyncio.Lock] = {}

    def repository(self, path: str, files: Edits) -> FakeRepository:
        """Make a repository of the user's with a first commit on main."""
        self.repositories[path] = made = FakeRepository(self.objects, self.now)
        made.commit(files)
        return made

    def _user(self, project: Project) -> FakeRepository:
        if project.path not in self.repositories:
            raise BadInput(f"There is no folder {project.path}.")
        return self.repositories[project.path]

    def _hub(self, project: Project) -> FakeHub:
        return self.hubs.setdefault(project.id, FakeHub())

    def _lock(self, name: str) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())

    def _main(self, project: Project) -> str:
        """Bring the hub's main to where the user's is."""
        if project.path not in self.repositories and f"refs/heads/{project.main}" in self._hub(project).refs:
            return self._hub(project).refs[f"refs/heads/{project.main}"]
        tip = self._user(project).branches.get(project.main)
        if tip is None:
            raise NotFound(f"{project.path} has no branch {project.main}.", hint="Name the branch to land on.")
        refs = self._hub(project).refs
        known = refs.get(f"refs/heads/{project.main}", "")
        if known and not self.objects.contains(tip, known):
            refs[f"{LOST}{known}"] = known
        refs[f"refs/heads/{project.main}"] = tip
        return tip
