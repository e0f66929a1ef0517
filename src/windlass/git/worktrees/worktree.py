"""An agent's worktree: a clone of its own on a branch of its own."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

from windlass.core.errors import NotAllowed
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.project import Project
from windlass.git.files import all_there, beside, config_text, make_folder, remove_tree, write_text
from windlass.git.hub import Hubs
from windlass.git.paths import HubPaths
from windlass.git.program import GitProgram
from windlass.git.user_repository import Habits, UserRepository
from windlass.git.worktrees.clone import habit_lines, make_clone, put_branch, put_habits
from windlass.git.worktrees.untrusted import is_folder, remove_locks, write_inside


class Worktrees:
    """Makes and verifies agents' worktrees."""

    def __init__(self, git: GitProgram, places: HubPaths, hubs: Hubs, user: UserRepository) -> None:
        self._git = git
        self._places = places
        self._hubs = hubs
        self._user = user

    async def ensure(self, project: Project, agent: Agent) -> str:
        """Make the worktree, or verify that it is one of ours; never reset one. If made, the commit it starts at."""
        path = self._places.worktree(project, agent)
        habits = await self._user.habits(project.path)
        self._write_settings(project, agent, habits)
        if all_there(path, [""]):
            self._verify(project, agent, path)
            remove_locks(path)
            return ""
        return await self._make(project, agent, path, habits)

    async def hide(self, project: Project, agent: Agent, names: Sequence[str]) -> None:
        """Let git see these paths neither in the hub's eyes nor in the agent's own."""
        await self._hubs.open(project)
        self._hubs.hide(project, names)
        habits = await self._user.habits(project.path)
        self._hubs.settle(project, habits)
        excludes = self._hubs.excludes(project, habits).encode("utf-8", "surrogateescape")
        write_inside(self._places.worktree(project, agent), ".git/info/exclude", excludes)

    def environment(self, project: Project, agent: Agent) -> dict[str, str]:
        """What keeps an agent's git away from the user's settings, and from waiting for a person."""
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

    async def _make(self, project: Project, agent: Agent, path: Path, habits: Habits) -> str:
        """Make it beside its place, then rename: a worktree is whole, or not there."""
        hub = await self._hubs.open(project)
        self._hubs.settle(project, habits)
        main, mine = await asyncio.gather(self._hubs.main(project), self._hubs.ref(hub, f"refs/heads/{agent.branch}"))
        self._places.given(project, agent).unlink(missing_ok=True)
        with beside(path) as made:
            await make_clone(self._git, hub, made, project.main, head=f"ref: refs/heads/{agent.branch}")
            put_branch(made, agent.branch, mine or main)
            put_habits(made, habits, self._hubs.excludes(project, habits))
            await self._check_out(hub, made, mine or main)
            shutil.copy2(made / ".git" / "index", self._places.index(project, agent))
            await self._git.ours(hub, "update-ref", f"refs/heads/{agent.branch}", mine or main)
            made.rename(path)
        return mine or main

    async def rebuild(self, project: Project, agent: Agent, hub: Path, commit: str) -> None:
        """Bring a worktree to a commit in place, with a `.git` that is new; what our index does not know stays.

        Repeating it after a crash gives the same.
        """
        path, index = self._places.worktree(project, agent), self._places.index(project, agent)
        habits = await self._user.habits(project.path)
        await asyncio.to_thread(remove_tree, path / ".git")
        extra = {"GIT_WORK_TREE": str(path), "GIT_INDEX_FILE": str(index)}
        await self._git.ours(hub, "read-tree", "--reset", "-u", commit, cwd=path, extra=extra)
        await make_clone(self._git, hub, path, project.main, head=f"ref: refs/heads/{agent.branch}")
        put_branch(path, agent.branch, commit)
        put_habits(path, habits, self._hubs.excludes(project, habits))
        shutil.copy2(index, path / ".git" / "index")

    async def _check_out(self, hub: Path, made: Path, commit: str) -> None:
        """Fill a new clone. Git works on the hub, where no filter is defined, and writes the clone's index."""
        extra = {"GIT_WORK_TREE": str(made), "GIT_INDEX_FILE": str(made / ".git" / "index")}
        await self._git.ours(hub, "-c", "checkout.workers=0", "read-tree", "-m", "-u", commit, cwd=made, extra=extra)

    def _write_settings(self, project: Project, agent: Agent, habits: Habits) -> None:
        file = self._places.settings(project, agent)
        if not file.exists():
            make_folder(file.parent)
            write_text(file, config_text(habit_lines(habits)))
