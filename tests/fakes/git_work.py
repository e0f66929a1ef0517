"""The fake git looks at what agents have written, and compares it."""

from __future__ import annotations

from fakes.git_worktrees import FakeWorktreeGit, agent_key, worktree_gone
from fakes.objects import different
from windlass.core.nouns.agent import Agent, Permissions
from windlass.core.nouns.project import Project
from windlass.core.radar.collisions import QuickLook
from windlass.core.runs.workdir import WorktreeState


class FakeWorkGit(FakeWorktreeGit):
    """The work in a worktree: how it is, how it differs, with whose work it clashes."""

    async def look(self, project: Project, agent: Agent, run: str, /) -> WorktreeState:
        async with self._lock(self.worktree_path(project, agent)):
            sight = self._see(project, agent)
            await self.pause("look.snapshot")
            snapshot = self._keep(project, sight, f"refs/windlass/snapshots/{agent_key(agent)}/{run}")
            await self.pause("look.show")
            own = self.objects.beyond(sight.main, sight.head)
            user = self.repositories.get(project.path)
            if user and agent.permissions is not Permissions.READ and (own or agent.branch in user.branches):
                self._show(project, agent.branch, sight.head)
        committed = self.objects.files(sight.head)
        names = different(committed, sight.files)
        return WorktreeState(
            head=sight.head,
            branch=sight.worktree.branch,
            commits=len(own),
            changed=tuple(name for name in names if name in committed),
            untracked=tuple(name for name in names if name not in committed),
            snapshot=snapshot,
            holes=sight.holes,
            unsaved=sight.unsaved,
            refused=sight.refused,
        )

    async def quick_look(self, project: Project, agent: Agent, /) -> QuickLook:
        async with self._lock(self.worktree_path(project, agent)):
            sight = self._see(project, agent)
            base = self.objects.base(sight.main, sight.head) or sight.main
            commit = self.objects.holding(sight.files, sight.head, "The worktree as it was", self.now())
        return self.objects.glimpse(base, head=sight.head, commit=commit)

    async def since(self, project: Project, base: str, /) -> QuickLook:
        main = self._main(project)
        return self.objects.glimpse(base, head=main, commit=main)

    async def clash(self, project: Project, one: QuickLook, other: QuickLook, /) -> tuple[str, ...]:
        del project
        return self.objects.merge(one.commit, other.commit).conflicts

    async def diff(self, project: Project, agent: Agent, /) -> str:
        main = self._main(project)
        known = self._hub(project).refs.get(f"refs/heads/{agent.branch}", "")
        if await self.has_worktree(project, agent):
            sight = self._see(project, agent)
            head, now = sight.head, self.objects.write_tree(sight.files)
        elif known:
            head = now = known
        else:
            raise worktree_gone(agent)
        return await self.diff_between(project, self.objects.base(main, head) or main, now)

    async def diff_between(self, project: Project, before: str, after: str, /) -> str:
        del project
        return self.objects.difference(before, after)

    async def diff_of(self, project: Project, head: str, /) -> str:
        main = self._main(project)
        return await self.diff_between(project, self.objects.base(main, head) or main, head)

    def _show(self, project: Project, branch: str, commit: str) -> None:
        """Create the branch in the user's repository, or move it if it is where we left it."""
        user, hub, ref = self._user(project), self._hub(project), f"refs/windlass/shown/{branch}"
        there = user.branches.get(branch, "")
        if there and there not in (hub.refs.get(ref), commit):
            return
        if there != commit:
            user.move(branch, commit)
        hub.refs[ref] = commit
