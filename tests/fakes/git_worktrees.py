"""The fake git in agents' worktrees: to make, prepare, renew and remove them."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fakes.git_state import GitState
from fakes.objects import Files
from fakes.repository import FakeWorktree
from windlass.core.errors import NotAllowed, NotFound
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.project import Project
from windlass.core.runs.worktree_setup import LOCK_FILES


@dataclass(frozen=True, slots=True)
class Sight:
    """A worktree as it was when it was looked at."""

    main: str
    head: str
    worktree: FakeWorktree
    files: Files
    unsaved: tuple[str, ...]
    refused: str

    @property
    def holes(self) -> tuple[str, ...]:
        return (*filter(None, [self.refused]), *self.unsaved)


class FakeWorktreeGit(GitState):
    """The worktree of an agent, from its start to its rescue."""

    async def worktree(self, project: Project, agent: Agent, /) -> tuple[str, str]:
        path, ref = self.worktree_path(project, agent), f"refs/heads/{agent.branch}"
        hub, main = self._hub(project), self._main(project)
        async with self._lock(path):
            if path not in self.worktrees:
                start = hub.refs.setdefault(ref, main)
                await self.pause("worktree.make")
                files = dict(self.objects.files(start))
                self.worktrees[path] = FakeWorktree(
                    self.objects, self.now, {agent.branch: start, project.main: main}, agent.branch, files
                )
            head = hub.refs[ref] = self.worktrees[path].branches.get(agent.branch, hub.refs.get(ref, main))
        return path, self.objects.base(main, head) or main

    async def renew(self, project: Project, agent: Agent, /, *, at: str = "") -> str:
        path, hub, main = self.worktree_path(project, agent), self._hub(project), at or self._main(project)
        async with self._lock(path):
            if path in self.worktrees:
                saved = await self._begin_anew(project, agent, main)
            else:
                saved = self._save_branch(project, agent, main)
            hub.refs[f"refs/heads/{agent.branch}"] = main
            hub.refs.pop(f"refs/windlass/renewing/{agent_key(agent)}", None)
        return saved if saved and not self.objects.contains(main, hub.refs[saved]) else ""

    async def branch(self, project: Project, agent: Agent, /) -> str:
        if await self.has_worktree(project, agent):
            return self._see(project, agent).head
        return self._hub(project).refs.get(f"refs/heads/{agent.branch}", "")

    async def commit_there(self, project: Project, agent: Agent, /) -> str:
        worktree = self.worktrees.get(self.worktree_path(project, agent))
        return worktree.branches.get(agent.branch, "") if worktree else ""

    async def keep_spares(self, project: Project, room: int, /, *, like: Agent | None = None) -> None:
        """A world in memory makes worktrees at once."""

    async def hide(self, project: Project, agent: Agent, names: Sequence[str], /) -> None:
        del agent  # it counts for all of them
        self._hub(project).hidden.update(names)

    async def record_extra_files(self, project: Project, agent: Agent, /) -> None:
        if worktree := self.worktrees.get(self.worktree_path(project, agent)):
            self._hub(project).given.setdefault(agent_key(agent), frozenset(worktree.ignored))

    async def locks(self, project: Project, agent: Agent, /) -> Mapping[str, str]:
        files = self.objects.files(self._hub(project).refs[f"refs/heads/{agent.branch}"])
        found = {name: text for name, text in files.items() if LOCK_FILES.fullmatch(posixpath.basename(name))}
        return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in found.items()}

    def worktree_path(self, project: Project, agent: Agent, /) -> str:
        return f"{self.home}/worktrees/{project.id}/{agent_key(agent)}"

    async def has_worktree(self, project: Project, agent: Agent, /) -> bool:
        return self.worktree_path(project, agent) in self.worktrees

    def reach(self, project: Project, agent: Agent, /) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return (f"{self.home}/hubs/{project.id}.git",), (f"{self.home}/gitconfig/{project.id}/{agent_key(agent)}",)

    def environment(self, project: Project, agent: Agent, /) -> dict[str, str]:
        return {"GIT_CONFIG_GLOBAL": f"{self.home}/gitconfig/{project.id}/{agent_key(agent)}/config"}

    async def remove_worktree(self, project: Project, agent: Agent, /) -> str:
        path = self.worktree_path(project, agent)
        async with self._lock(path):
            if path not in self.worktrees and (taken := self._rescues(project, agent)):
                return _rescue_ref(agent, taken)  # it was removed already, and nobody could tell
            sight = self._see(project, agent)
            given = self._hub(project).given.get(agent_key(agent), frozenset()) | self._hub(project).hidden
            ignored = (f"{each}: ignored by git" for each in sorted(sight.worktree.ignored - given))
            if holes := (*sight.holes, *ignored):
                why = f"a snapshot cannot hold all of it: {'; '.join(holes)}"
                raise NotAllowed(f"The worktree of {agent.id} is kept, because {why}.", hint=f"Look at {path}.")
            ref = self._rescue(project, agent, sight)
            await self.pause("remove_worktree.saved")
            self.worktrees.pop(path, None)
        return ref

    def _see(self, project: Project, agent: Agent) -> Sight:
        """Take the branch in, and the files as they are."""
        worktree = self.worktrees.get(self.worktree_path(project, agent))
        if worktree is None:
            raise worktree_gone(agent)
        main, refs, ref = self._main(project), self._hub(project).refs, f"refs/heads/{agent.branch}"
        unsaved = tuple(f"{each}: a nested repository" for each in sorted(worktree.nested))
        refused = "" if agent.branch in worktree.branches else f"the branch {agent.branch} is gone from the worktree"
        if worktree.damage and not refused:
            there = worktree.branches[agent.branch]
            refused = f"{agent.branch} is at commit {there[:12]}, which can't be taken in: {worktree.damage}"
        if not refused:
            refs[ref] = worktree.branches[agent.branch]
        hidden = self._hub(project).hidden
        files = {name: text for name, text in worktree.files.items() if hidden.isdisjoint(_way(name))}
        return Sight(main, refs.get(ref, main), worktree, files, unsaved, refused)

    def _keep(self, project: Project, sight: Sight, ref: str) -> str:
        """Put what was seen under a ref, as a commit on top of the branch, or the branch itself if it is the same."""
        commit = self.objects.holding(sight.files, sight.head, "The worktree as it was", self.now())
        self._hub(project).refs[ref] = commit
        return commit

    def _rescue(self, project: Project, agent: Agent, sight: Sight) -> str:
        """Keep the files, and every commit that the clone keeps by a name."""
        ref = _rescue_ref(agent, self._rescues(project, agent) + 1)
        for count, (name, commit) in enumerate(sight.worktree.branches.items()):
            self._hub(project).refs[f"{ref.removesuffix('tree')}{count}-{name.replace('/', '-')}"] = commit
        self._keep(project, sight, ref)
        return ref

    def _rescues(self, project: Project, agent: Agent) -> int:
        """How often a worktree of this agent was saved."""
        folder = f"refs/windlass/rescue/{agent_key(agent)}/"
        saved = (ref for ref in self._hub(project).refs if ref.startswith(folder) and ref.endswith("/tree"))
        return max((int(each.removeprefix(folder).split("/")[0]) for each in saved), default=0)

    async def _begin_anew(self, project: Project, agent: Agent, main: str) -> str:
        """Save what is there, then bring it to main. A mark says that it is saved, in case the rest is broken off."""
        refs, mark = self._hub(project).refs, f"refs/windlass/renewing/{agent_key(agent)}"
        if mark not in refs:
            sight = self._see(project, agent)
            same = self.objects.write_tree(sight.files) == self.objects.tree(main) and not sight.holes
            if same and (sight.head, sight.worktree.branch) == (main, agent.branch):
                return ""
            if sight.holes:
                why = f"not all of it can be saved: {'; '.join(sight.holes)}"
                raise NotAllowed(f"The worktree of {agent.id} can't begin anew, because {why}.", hint="Look at it.")
            self._rescue(project, agent, sight)
            refs[mark] = main
        await self.pause("renew.saved")
        worktree = self.worktrees[self.worktree_path(project, agent)]
        worktree.branches = {agent.branch: main, project.main: main}
        worktree.branch, worktree.files = agent.branch, dict(self.objects.files(main))
        await self.pause("renew.rebuilt")
        return _rescue_ref(agent, self._rescues(project, agent))

    def _save_branch(self, project: Project, agent: Agent, main: str) -> str:
        """A branch without a worktree: only its commits are to be kept."""
        refs = self._hub(project).refs
        head = refs.get(f"refs/heads/{agent.branch}", "")
        if not head or self.objects.contains(main, head):
            return ""
        saved = _rescue_ref(agent, self._rescues(project, agent) + 1)
        refs[saved] = head
        return saved


def _way(name: str) -> set[str]:
    """A file, and the folders that it is in."""
    parts = name.split("/")
    return {"/".join(parts[:count]) for count in range(1, len(parts) + 1)}


def _rescue_ref(agent: Agent, number: int) -> str:
    return f"refs/windlass/rescue/{agent_key(agent)}/{number}/tree"


def agent_key(agent: Agent) -> str:
    return f"{agent.name}.{agent.instance}" if agent.instance else agent.name


def worktree_gone(agent: Agent) -> NotFound:
    return NotFound(f"The worktree of {agent.id} is gone.", hint=f"Its branch is {agent.branch}.")
