"""Renew a worktree: its agent begins the next task at main, in the same place."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from windlass.core.errors import NotAllowed
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.project import Project
from windlass.git.files import shown
from windlass.git.hub import Hubs
from windlass.git.paths import HubPaths, key
from windlass.git.program import GitProgram
from windlass.git.worktrees.snapshot import SeenWorktree, Snapshots, rescue_ref
from windlass.git.worktrees.untrusted import is_folder
from windlass.git.worktrees.worktree import Worktrees


class WorktreeRenewal:
    """Saves an agent's work that has not landed, and brings its worktree and branch to main.

    Files that git ignores stay: no snapshot holds them, and they may have taken long to make. A mark in the hub says
    that all is saved, so that after a crash the rest follows, and half a worktree is never looked at.
    """

    def __init__(
        self, git: GitProgram, places: HubPaths, hubs: Hubs, worktrees: Worktrees, snapshots: Snapshots
    ) -> None:
        self._git = git
        self._places = places
        self._hubs = hubs
        self._worktrees = worktrees
        self._snapshots = snapshots

    async def renew(self, project: Project, agent: Agent, at: str) -> str:
        """Begin anew at main, or at a commit. Returns the ref of the work that had not landed, or nothing."""
        main = at or await self._hubs.main(project)
        hub = await self._hubs.open(project)
        mark = f"refs/windlass/renewing/{key(agent)}"
        if not is_folder(self._places.worktree(project, agent)):
            saved = await self._save_branch(hub, agent, main)
        else:
            if not await self._hubs.ref(hub, mark):
                sight = await self._snapshots.see(project, agent)
                unchanged = await self._git.tree_of(hub, sight.head) == sight.tree and not sight.holes
                if unchanged and sight.head == main and sight.branch == agent.branch:
                    return ""
                await self._save(project, agent, hub, sight, main)
                await self._hubs.put(hub, {mark: main})
            await self._worktrees.rebuild(project, agent, hub, main)
            saved = rescue_ref(agent, self._snapshots.rescues(hub, agent))
        await self._hubs.put(hub, {f"refs/heads/{agent.branch}": main})
        unlanded = bool(saved) and not await self._hubs.contains(hub, main, await self._hubs.ref(hub, saved))
        await self._git.ours(hub, "update-ref", "-d", mark)
        return saved if unlanded else ""

    async def _save(self, project: Project, agent: Agent, hub: Path, sight: SeenWorktree, main: str) -> None:
        path = self._places.worktree(project, agent)
        if holes := (*sight.holes, *await self._in_the_way(hub, path, sight, main)):
            raise NotAllowed(
                f"The worktree of {agent.id} can't begin anew, because not all of it can be saved: {'; '.join(holes)}.",
                hint=f"Look at {path}, and move what you need.",
            )
        await self._snapshots.rescue(project, agent, hub, sight)

    async def _in_the_way(self, hub: Path, path: Path, sight: SeenWorktree, main: str) -> list[str]:
        """Ignored files that new files of main would overwrite: no snapshot has them."""
        asked = ("diff-tree", "-r", "-z", "--no-renames", "--diff-filter=A", "--name-only", sight.tree, main)
        new = map(shown, (await self._git.ours(hub, *asked)).names)
        there = {found for name in new if (found := _obstacle(path, name))}
        if not there:
            return []
        known = (await self._git.ours(hub, "ls-tree", "-r", "-z", "--name-only", sight.tree)).names
        return [f"{name}: ignored by git, but main has a file there" for name in sorted(there - {*map(shown, known)})]

    async def _save_branch(self, hub: Path, agent: Agent, main: str) -> str:
        """Save the commits of a branch without a worktree."""
        head = await self._hubs.ref(hub, f"refs/heads/{agent.branch}")
        if not head or await self._hubs.contains(hub, main, head):
            return ""
        saved = rescue_ref(agent, self._snapshots.rescues(hub, agent) + 1)
        await self._hubs.put(hub, {saved: head})
        return saved


def _obstacle(path: Path, name: str) -> str:
    """The path that is in the way of a file, or of a folder above it."""
    for part in (*reversed(PurePosixPath(name).parents), PurePosixPath(name)):
        place = path / part
        if os.path.lexists(place) and (str(part) == name or not is_folder(place)):
            return str(part)
    return ""
