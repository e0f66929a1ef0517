"""Showing an agent's branch in the user's repository."""

from __future__ import annotations

from pathlib import Path

from windlass.core.nouns.project import Project
from windlass.git.hub import Hubs
from windlass.git.program import ANY, GitProgram
from windlass.git.user_repository import RECEIVE, UserRepository


class BranchDisplay:
    """Puts branches beside the user's own, and never over them."""

    def __init__(self, git: GitProgram, hubs: Hubs, user: UserRepository) -> None:
        self._git = git
        self._hubs = hubs
        self._user = user

    async def show(self, project: Project, hub: Path, branch: str, commit: str, *, new: bool) -> None:
        """Create a branch that has something new, or move it if it is where we left it; never one the user moved."""
        if self._user.absence(project):
            return
        ref = f"refs/heads/{branch}"
        there = await self._user.ref(project, ref)
        if not there and not new:
            return
        if there and there != commit:
            ours = [await self._hubs.ref(hub, f"refs/windlass/{kind}/{branch}") for kind in ("shown", "showing")]
            if there not in ours:
                return
        if there != commit:
            # Said before it is done: after a crash in between, both values are known to be ours.
            await self._git.ours(hub, "update-ref", f"refs/windlass/showing/{branch}", commit)
            lease = f"--force-with-lease={ref}:{there}"
            pushed = await self._git.ours(
                hub, "push", "-q", "--no-verify", lease, RECEIVE, "--", project.path, f"+{commit}:{ref}", ok=ANY
            )
            if pushed.code:
                return
        await self._git.ours(hub, "update-ref", f"refs/windlass/shown/{branch}", commit)
