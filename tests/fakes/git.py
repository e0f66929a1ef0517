"""The git port in memory: repositories, a hub for each project, and worktrees, moved by a test as people move them."""

from __future__ import annotations

import asyncio
import hashlib
import posixpath
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from fakes.archive import FakeArchive
from fakes.objects import Files, Objects, different
from fakes.repository import Edits, FakeHub, FakeRepository, FakeWorktree
from windlass.core.errors import BadInput, Conflict, NotAllowed, NotFound, TakenBack
from windlass.core.nouns.agent import Agent, Permissions
from windlass.core.nouns.change import Candidate, Landing, LandingShape
from windlass.core.nouns.project import Project
from windlass.core.radar.collisions import QuickLook
from windlass.core.runs.workdir import WorktreeState
from windlass.core.runs.worktree_setup import LOCK_FILES

Pause = Callable[[str], Awaitable[None]]
"""Awaited between two effects of one call: there, others may have a turn, or all may end."""

CHECKOUT = "refs/windlass/checkout"
"""The user's checkout when it was last looked at."""
LOST = "refs/windlass/lost/"
"""Tips of main that a person has rewritten since."""


async def no_pause(name: str) -> None:
    """Go on at once."""
    del name


@dataclass(frozen=True, slots=True)
class Sight:
    """A worktree as it was when it was looked at."""

    main: str
    head: str
    worktree: FakeWorktree
    files: Files
    holes: tuple[str, ...]


class FakeGit:
    """All of git that the engine needs, without a disk. Files merge as a whole, never line by line."""

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

    # ── the user's repository ──

    async def locate(self, path: str, /) -> str:
        top = posixpath.normpath(path)
        if top not in self.repositories:
            raise BadInput(f"{path} is not in a git repository.", hint="Go to one, or make one: git init && git commit")
        return top

    async def inspect(self, top: str, /, *, main: str = "") -> str:
        branch = main or "main"
        if branch not in self.repositories[top].branches:
            raise BadInput(f"{top} has no branch {branch!r}.", hint="Name the branch to land on.")
        return branch

    async def main(self, project: Project, /) -> str:
        return self._main(project)

    async def branch_taken(self, project: Project, branch: str, /) -> bool:
        return f"refs/heads/{branch}" in self._hub(project).refs or branch in self._user(project).branches

    async def files(self, project: Project, /) -> tuple[Sequence[str], bool]:
        return sorted(self.objects.files(self._main(project))), False

    # ── worktrees ──

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

    def worktree_path(self, project: Project, agent: Agent, /) -> str:
        return f"{self.home}/worktrees/{project.id}/{_key(agent)}"

    def has_worktree(self, project: Project, agent: Agent, /) -> bool:
        return self.worktree_path(project, agent) in self.worktrees

    def environment(self, project: Project, agent: Agent, /) -> dict[str, str]:
        return {"GIT_CONFIG_GLOBAL": f"{self.home}/gitconfig/{project.id}/{_key(agent)}/config"}

    def reach(self, project: Project, agent: Agent, /) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return (f"{self.home}/hubs/{project.id}.git",), (f"{self.home}/gitconfig/{project.id}/{_key(agent)}",)

    async def branch(self, project: Project, agent: Agent, /) -> str:
        return self._see(project, agent).head if self.has_worktree(project, agent) else ""

    async def checkout(self, project: Project, /) -> str:
        user, hub = self._user(project), self._hub(project)
        head = user.branches.get(user.checked_out) or self._main(project)
        known = hub.refs.get(CHECKOUT, "")
        if known and self.objects.commits[known].parents == (head,) and self.objects.files(known) == user.files:
            return known
        hub.refs[CHECKOUT] = self.objects.holding(user.files, head, "Your checkout as it was", self.now())
        return hub.refs[CHECKOUT]

    async def hide(self, project: Project, agent: Agent, names: Sequence[str], /) -> None:
        del agent  # it counts for all of them
        self._hub(project).hidden.update(names)

    async def record_extra_files(self, project: Project, agent: Agent, /) -> None:
        if worktree := self.worktrees.get(self.worktree_path(project, agent)):
            self._hub(project).given.setdefault(_key(agent), frozenset(worktree.ignored))

    async def locks(self, project: Project, agent: Agent, /) -> Mapping[str, str]:
        files = self.objects.files(self._hub(project).refs[f"refs/heads/{agent.branch}"])
        found = {name: text for name, text in files.items() if LOCK_FILES.fullmatch(posixpath.basename(name))}
        return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in found.items()}

    async def renew(self, project: Project, agent: Agent, /, *, at: str = "") -> str:
        path, hub, main = self.worktree_path(project, agent), self._hub(project), at or self._main(project)
        async with self._lock(path):
            if path in self.worktrees:
                saved = await self._begin_anew(project, agent, main)
            else:
                saved = self._save_branch(project, agent, main)
            hub.refs[f"refs/heads/{agent.branch}"] = main
            hub.refs.pop(f"refs/windlass/renewing/{_key(agent)}", None)
        return saved if saved and not self.objects.contains(main, hub.refs[saved]) else ""

    async def look(self, project: Project, agent: Agent, run: str, /) -> WorktreeState:
        async with self._lock(self.worktree_path(project, agent)):
            sight = self._see(project, agent)
            await self.pause("look.snapshot")
            snapshot = self._keep(project, sight, f"refs/windlass/snapshots/{_key(agent)}/{run}")
            await self.pause("look.show")
            own = self.objects.beyond(sight.main, sight.head)
            if agent.permissions is not Permissions.READ and (own or agent.branch in self._user(project).branches):
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
        )

    async def diff(self, project: Project, agent: Agent, /) -> str:
        main = self._main(project)
        known = self._hub(project).refs.get(f"refs/heads/{agent.branch}", "")
        if self.has_worktree(project, agent):
            sight = self._see(project, agent)
            head, now = sight.head, self.objects.write_tree(sight.files)
        elif known:
            head = now = known
        else:
            raise _gone(agent)
        return await self.diff_between(project, self.objects.base(main, head) or main, now)

    async def diff_between(self, project: Project, before: str, after: str, /) -> str:
        del project
        return self.objects.difference(before, after)

    async def diff_of(self, project: Project, head: str, /) -> str:
        main = self._main(project)
        return await self.diff_between(project, self.objects.base(main, head) or main, head)

    async def remove_worktree(self, project: Project, agent: Agent, /) -> str:
        path = self.worktree_path(project, agent)
        async with self._lock(path):
            if path not in self.worktrees and (taken := self._rescues(project, agent)):
                return _rescue_ref(agent, taken)  # it was removed already, and nobody could tell
            sight = self._see(project, agent)
            given = self._hub(project).given.get(_key(agent), frozenset()) | self._hub(project).hidden
            ignored = (f"{each}: ignored by git" for each in sorted(sight.worktree.ignored - given))
            if holes := (*sight.holes, *ignored):
                why = f"a snapshot cannot hold all of it: {'; '.join(holes)}"
                raise NotAllowed(f"The worktree of {agent.id} is kept, because {why}.", hint=f"Look at {path}.")
            ref = self._rescue(project, agent, sight)
            await self.pause("remove_worktree.saved")
            self.worktrees.pop(path, None)
        return ref

    # ── comparing ──

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

    # ── landing ──

    async def stage(
        self, project: Project, head: str, message: str, /, *, onto: str = "", shape: LandingShape = LandingShape.MERGE
    ) -> Candidate:
        main = self._main(project)
        before = onto or main
        for each in (head, before):
            self._require(each)
        if self.objects.contains(before, head):
            tree = self.objects.tree(before)
            return Candidate(commit=before, tree=tree, before=before, commits=(), files=(), head=head)
        self._refuse_taken_back(project, main, head)
        merged = self.objects.merge(before, head)
        if merged.conflicts:
            raise Conflict(self._explain(merged.conflicts, before, head), hint="Merge origin/main into the branch.")
        parents = (before, head) if shape is LandingShape.MERGE else (before,)
        commit = self.objects.commit(merged.files, parents, message, self.now())
        self._hub(project).refs[f"refs/windlass/candidates/{commit}"] = commit
        return Candidate(
            commit=commit,
            tree=self.objects.tree(commit),
            before=before,
            commits=self.objects.beyond(before, head),
            files=self.objects.differing(before, commit),
            head=head,
            shape=LandingShape.MERGE if shape is LandingShape.MERGE else LandingShape.SQUASH,
        )

    async def land(self, project: Project, /, *stack: Candidate) -> Landing:
        top = stack[-1]
        async with self._lock(project.id):
            self._require(top.commit)
            tip = self._main(project)
            if not self.objects.contains(tip, top.commit):
                self._prove(project, stack, tip)
                await self.pause("land.move")
                self._move(project, replace(top, before=tip))
                await self.pause("land.moved")
                self._main(project)
        return await self.receipt(project, top)

    async def receipt(self, project: Project, candidate: Candidate, /) -> Landing:
        self._require(candidate.commit)
        return Landing(
            main=project.main,
            before=candidate.before,
            after=candidate.commit,
            tree=candidate.tree,
            commits=candidate.commits,
            files=self.objects.differing(candidate.before, candidate.tree),
            landed_at=self._hub(project).landed_at.setdefault(candidate.commit, self.now()),
            top=candidate.top,
            proof=candidate.proof,
        )

    async def landed(self, project: Project, commit: str, /) -> bool:
        main = self._main(project)
        return commit in self.objects.commits and self.objects.contains(main, commit)

    async def take(self, project: Project, branch: str, /) -> tuple[str, str]:
        commit = self._user(project).branches.get(branch)
        if branch == project.main:
            raise BadInput(f"{branch} is what changes land on.", hint="Name a branch that has something more.")
        if commit is None:
            raise NotFound(f"{project.path} has no branch {branch!r}.", hint="Run `git branch` to see them.")
        self._hub(project).refs[f"refs/windlass/taken/{commit}"] = commit
        return commit, self.objects.commits[commit].message.partition("\n")[0]

    async def revert(self, project: Project, landing: Landing, branch: str, message: str, /) -> str:
        if landing.before == landing.after:
            raise NotAllowed("This landing changed nothing, so there is nothing to take back.")
        made = self.objects.commit(self.objects.files(landing.before), (landing.after,), message, self.now())
        self._hub(project).refs[f"refs/heads/{branch}"] = made
        return made

    # ── inside ──

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
        tip = self._user(project).branches.get(project.main)
        if tip is None:
            raise NotFound(f"{project.path} has no branch {project.main}.", hint="Name the branch to land on.")
        refs = self._hub(project).refs
        known = refs.get(f"refs/heads/{project.main}", "")
        if known and not self.objects.contains(tip, known):
            refs[f"{LOST}{known}"] = known
        refs[f"refs/heads/{project.main}"] = tip
        return tip

    def _see(self, project: Project, agent: Agent) -> Sight:
        """Take the branch in, and the files as they are."""
        worktree = self.worktrees.get(self.worktree_path(project, agent))
        if worktree is None:
            raise _gone(agent)
        main, refs, ref = self._main(project), self._hub(project).refs, f"refs/heads/{agent.branch}"
        holes = tuple(f"{each}: a nested repository" for each in sorted(worktree.nested))
        if agent.branch in worktree.branches:
            refs[ref] = worktree.branches[agent.branch]
        else:
            holes = (f"{agent.branch}: the branch is gone from the worktree", *holes)
        hidden = self._hub(project).hidden
        files = {name: text for name, text in worktree.files.items() if hidden.isdisjoint(_way(name))}
        return Sight(main, refs.get(ref, main), worktree, files, holes)

    def _keep(self, project: Project, sight: Sight, ref: str) -> str:
        """Put what was seen under a ref, as a commit on top of the branch, or the branch itself if it is the same."""
        commit = self.objects.holding(sight.files, sight.head, "The worktree as it was", self.now())
        self._hub(project).refs[ref] = commit
        return commit

    def _show(self, project: Project, branch: str, commit: str) -> None:
        """Create the branch in the user's repository, or move it if it is where we left it."""
        user, hub, ref = self._user(project), self._hub(project), f"refs/windlass/shown/{branch}"
        there = user.branches.get(branch, "")
        if there and there not in (hub.refs.get(ref), commit):
            return
        if there != commit:
            user.move(branch, commit)
        hub.refs[ref] = commit

    def _rescue(self, project: Project, agent: Agent, sight: Sight) -> str:
        """Keep the files, and every commit that the clone keeps by a name."""
        ref = _rescue_ref(agent, self._rescues(project, agent) + 1)
        for count, (name, commit) in enumerate(sight.worktree.branches.items()):
            self._hub(project).refs[f"{ref.removesuffix('tree')}{count}-{name.replace('/', '-')}"] = commit
        self._keep(project, sight, ref)
        return ref

    def _rescues(self, project: Project, agent: Agent) -> int:
        """How often a worktree of this agent was saved."""
        folder = f"refs/windlass/rescue/{_key(agent)}/"
        saved = (ref for ref in self._hub(project).refs if ref.startswith(folder) and ref.endswith("/tree"))
        return max((int(each.removeprefix(folder).split("/")[0]) for each in saved), default=0)

    async def _begin_anew(self, project: Project, agent: Agent, main: str) -> str:
        """Save what is there, then bring it to main. A mark says that it is saved, in case the rest is broken off."""
        refs, mark = self._hub(project).refs, f"refs/windlass/renewing/{_key(agent)}"
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

    def _refuse_taken_back(self, project: Project, main: str, head: str) -> None:
        """What a person took out of main does not come back in an agent's history."""
        lost = [commit for ref, commit in self._hub(project).refs.items() if ref.startswith(LOST)]
        gone = frozenset[str]().union(*map(self.objects.history, lost)) - self.objects.history(main)
        if back := [each for each in self.objects.beyond(main, head) if each in gone]:
            raise TakenBack("\n".join(f"{each} {self.objects.commits[each].message}" for each in back))

    def _require(self, commit: str) -> None:
        if commit not in self.objects.commits:
            raise NotFound(f"The hub has no commit {commit[:80]}.", hint="Run `windlass doctor`.")

    def _explain(self, names: tuple[str, ...], main: str, head: str) -> str:
        text = f"{len(names)} file{'s' * (len(names) != 1)} in conflict with main: {', '.join(names)}.\n"
        for name in names:
            ours, theirs = (self.objects.files(each).get(name, "").rstrip("\n") for each in (main, head))
            text += f"\n--- {name}\n<<<<<<< main\n{ours}\n=======\n{theirs}\n>>>>>>> this change\n"
        return text

    def _prove(self, project: Project, stack: Sequence[Candidate], tip: str) -> None:
        """All that must be true before main may move, whatever was computed before."""
        for each in stack:
            if tip != each.before:
                raise Conflict(f"{project.main} has moved to {tip[:12]} since the change was tested.")
            parents = self.objects.commits[each.commit].parents
            wanted = (tip, each.head) if each.shape is LandingShape.MERGE else (tip,)
            if parents != wanted:
                raise Conflict(f"{each.commit[:12]} was not made on {project.main} as it is.")
            again = self.objects.write_tree(self.objects.merge(tip, each.head).files)
            if not each.tree == again == self.objects.tree(each.commit):
                raise Conflict(f"{each.commit[:12]} does not hold the tree that was tested.")
            tip = each.commit

    def _move(self, project: Project, candidate: Candidate) -> None:
        """Compare and swap; where main is checked out, its files follow, and local ones are never overwritten."""
        user = self._user(project)
        if user.branches.get(project.main) != candidate.before:
            raise Conflict(f"{project.main} has moved since the change was tested.")
        if user.checked_out == project.main:
            before, after = self.objects.files(candidate.before), self.objects.files(candidate.commit)
            touched = different(before, after)
            if mine := [each for each in touched if user.files.get(each) != before.get(each)]:
                raise NotAllowed(
                    f"Your checkout {project.path} is in the way: local changes would be overwritten: {mine[0]}.",
                    hint="Commit, stash or move what is named there; then it lands.",
                )
            user.write({each: after.get(each) for each in touched})
        user.move(project.main, candidate.commit)


def _way(name: str) -> set[str]:
    """A file, and the folders that it is in."""
    parts = name.split("/")
    return {"/".join(parts[:count]) for count in range(1, len(parts) + 1)}


def _rescue_ref(agent: Agent, number: int) -> str:
    return f"refs/windlass/rescue/{_key(agent)}/{number}/tree"


def _key(agent: Agent) -> str:
    return f"{agent.name}.{agent.instance}" if agent.instance else agent.name


def _gone(agent: Agent) -> NotFound:
    return NotFound(f"The worktree of {agent.id} is gone.", hint=f"Its branch is {agent.branch}.")
