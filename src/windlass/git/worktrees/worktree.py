"""An agent's worktree: a clone of its own on a branch of its own."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

from windlass.core.errors import NotAllowed
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.project import Project
from windlass.git.files import beside, config_text, exists, make_folder, remove_tree, write_text
from windlass.git.hub import Hubs
from windlass.git.paths import HubPaths
from windlass.git.program import GitProgram
from windlass.git.user_repository import UserGitSettings, UserRepository
from windlass.git.worktrees.clone import Clones, settings_lines
from windlass.git.worktrees.spares import Spares
from windlass.git.worktrees.untrusted import is_folder, remove_locks, write_inside


class Worktrees:
    """Makes and verifies agents' worktrees."""

    def __init__(self, git: GitProgram, places: HubPaths, hubs: Hubs, user: UserRepository) -> None:
        self._git = git
        self._places = places
        self._hubs = hubs
        self._user = user
        self._clones = Clones(git, hubs)
        self.spares = Spares(git, places, hubs)

    async def ensure(self, project: Project, agent: Agent) -> str:
        """Make the worktree, or verify that it is one of ours; never reset one. If made, the commit it starts at."""
        path = self._places.worktree(project, agent)
        settings = await self._user.settings(project.path)
        file = self._places.settings(project, agent)
        if not file.exists():
            make_folder(file.parent)
            write_text(file, config_text(settings_lines(settings)))
        if exists(path):
            self._verify(project, agent, path)
            remove_locks(path)
            return ""
        return await self._make(project, agent, path, settings)

    async def hide(self, project: Project, agent: Agent, names: Sequence[str]) -> None:
        """Exclude these paths in the hub and in the agent's clone."""
        await self._hubs.open(project)
        self._hubs.hide(project, names)
        settings = await self._user.settings(project.path)
        self._hubs.write_settings(project, settings)
        excludes = self._hubs.excludes(project, settings).encode("utf-8", "surrogateescape")
        write_inside(self._places.worktree(project, agent), ".git/info/exclude", excludes)

    def environment(self, project: Project, agent: Agent) -> dict[str, str]:
        """Variables that keep an agent's git away from the user's settings, and from waiting for a person."""
        return {
            "GIT_CONFIG_GLOBAL": str(self._places.settings(project, agent)),
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_EDITOR": "true",
        }

    def _verify(self, project: Project, agent: Agent, path: Path) -> None:
        known = self._places.index(project, agent).is_file()
        if not (known and is_folder(path) and is_folder(path / ".git")):
            raise NotAllowed(
                f"{path} is in the way: it is not the worktree that Windlass made for {agent.id}.",
                hint="Move it elsewhere.",
            )

    async def _make(self, project: Project, agent: Agent, path: Path, settings: UserGitSettings) -> str:
        """Make it beside its place, then rename: a worktree is whole, or does not exist."""
        hub = await self._hubs.open(project)
        self._hubs.write_settings(project, settings)
        main, mine = await self._hubs.main(project), await self._hubs.ref(hub, f"refs/heads/{agent.branch}")
        self._places.given(project, agent).unlink(missing_ok=True)
        with beside(path) as made:
            self.spares.take(project, hub, made)
            await self._clone(project, agent, hub, made, mine or main)
            await self.spares.fill(hub, made, made / ".git" / "index", mine or main)
            shutil.copy2(made / ".git" / "index", self._places.index(project, agent))
            await self._hubs.put(hub, {f"refs/heads/{agent.branch}": mine or main})
            made.rename(path)
        return mine or main

    async def rebuild(self, project: Project, agent: Agent, hub: Path, commit: str) -> None:
        """Bring a worktree to a commit in place, with a new `.git`; files that our index does not know stay.

        It can be repeated after a crash.
        """
        path, index = self._places.worktree(project, agent), self._places.index(project, agent)
        await asyncio.to_thread(remove_tree, path / ".git")
        extra = {"GIT_WORK_TREE": str(path), "GIT_INDEX_FILE": str(index)}
        await self._git.ours(hub, "read-tree", "--reset", "-u", commit, cwd=path, extra=extra)
        with beside(path) as made:  # nothing is written by name where an agent could have put a link
            await self._clone(project, agent, hub, made, commit)
            shutil.copy2(index, made / ".git" / "index")
            (made / ".git").rename(path / ".git")

    async def _clone(self, project: Project, agent: Agent, hub: Path, folder: Path, commit: str) -> None:
        settings = await self._user.settings(project.path)
        await self._clones.make(
            hub,
            folder,
            project.main,
            commit=commit,
            branch=agent.branch,
            settings=settings,
            excludes=self._hubs.excludes(project, settings),
        )
