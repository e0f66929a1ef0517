"""Showing an agent's branch in the user's repository."""

from __future__ import annotations

from collections.abc import Mapping
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

    async def show(
        self, project: Project, hub: Path, branch: str, commit: str, *, new: bool, also: Mapping[str, str]
    ) -> None:
        """Create a branch that has something new, or move it if it is where we left it; never one the user moved.

        Other refs of the hub are put in any case.
        """
        ref, shown = f"refs/heads/{branch}", f"refs/windlass/shown/{branch}"
        gone = self._user.absence(project)
        there = "" if gone else await self._user.ref(project, ref)
        if gone or not await self._may_show(hub, branch, commit, there, new=new):
            await self._hubs.put(hub, also)
        elif there == commit:
            known = await self._hubs.ref(hub, shown) == commit
            await self._hubs.put(hub, {**also, **({} if known else {shown: commit})})
        else:
            # Said before it is done: after a crash in between, both values are known to be ours.
            await self._hubs.put(hub, {**also, f"refs/windlass/showing/{branch}": commit})
            lease = f"--force-with-lease={ref}:{there}"
            how = ("-q", "--no-verify", lease, RECEIVE, "--", project.path, f"+{commit}:{ref}")
            if not (await self._git.ours(hub, "push", *how, ok=ANY)).code:
                await self._hubs.put(hub, {shown: commit})

    async def _may_show(self, hub: Path, branch: str, commit: str, there: str, *, new: bool) -> bool:
        if not there or there == commit:
            return bool(there) or new
        return there in [await self._hubs.ref(hub, f"refs/windlass/{kind}/{branch}") for kind in ("shown", "showing")]
