"""The git port: a project's repository, the hub beside it, and the worktrees of its agents."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from windlass.core.errors import NotAllowed, NotFound
from windlass.core.nouns.agent import Agent, Permissions
from windlass.core.nouns.change import Candidate, Landing, LandingShape
from windlass.core.nouns.project import Project
from windlass.core.radar.collisions import QuickLook
from windlass.core.runs.workdir import WorktreeState
from windlass.core.runs.worktree_setup import LOCK_FILES
from windlass.git.files import NEW, all_there, remove_tree, shown
from windlass.git.hub import Hubs, Locks
from windlass.git.inspect import Inspection
from windlass.git.landing.land import Gateway
from windlass.git.landing.show_branch import Showing
from windlass.git.paths import HubPaths, key
from windlass.git.program import ANY, GitProgram, no_step
from windlass.git.quick_look import QuickLooks
from windlass.git.user_repository import UserRepository
from windlass.git.worktrees.check_trees import CheckTrees
from windlass.git.worktrees.renew import Renewals
from windlass.git.worktrees.saved_work import LONGEST_DIFF, HubArchive
from windlass.git.worktrees.snapshot import SeenWorktree, Snapshots, rescue_ref
from windlass.git.worktrees.untrusted import is_inhabited
from windlass.git.worktrees.worktree import Worktrees

GONE = ".gone-"
"""How a worktree is called that is saved and being removed."""
MOST_NAMED = 10
LONGEST_LISTING = 4 << 20


class HubGit:
    """All of it, on the git program that is installed."""

    def __init__(
        self,
        home: Path,
        *,
        environment: Mapping[str, str],
        now: Callable[[], float] = time.time,
        step: Callable[[str], None] = no_step,
    ) -> None:
        self._home = home
        self._git = GitProgram(environment, step)
        self._places = HubPaths(home)
        self._user = UserRepository(self._git, environment)
        self._inspection = Inspection(self._git, self._user, home)
        self._hubs = Hubs(self._git, self._places, self._user)
        self._worktrees = Worktrees(self._git, self._places, self._hubs, self._user)
        self._snapshots = Snapshots(self._git, self._places, self._hubs)
        self._renewals = Renewals(self._git, self._places, self._hubs, self._worktrees, self._snapshots)
        self._quick_looks = QuickLooks(self._git, self._places, self._hubs, self._snapshots)
        self._showing = Showing(self._git, self._hubs, self._user)
        self._gateway = Gateway(self._git, self._hubs, self._user, now)
        self._locks = Locks()
        self.archive = HubArchive(self._git, self._places, self._hubs, self._user)
        """What is kept for later, and the proof of what landed."""
        self.trees = CheckTrees(self._git, self._hubs, self._user)
        """Trees for checks."""

    async def locate(self, path: str, /) -> str:
        """The top folder of the user's repository at a path, or a clear refusal."""
        return await self._inspection.locate(path)

    async def inspect(self, top: str, /, *, main: str = "") -> str:
        """The main branch of the user's repository, or a clear refusal of what we can't work on."""
        return await self._inspection.inspect(top, main)

    async def main(self, project: Project, /) -> str:
        """Bring the hub up to date and return the tip of main."""
        return await self._hubs.main(project)

    async def branch_taken(self, project: Project, branch: str, /) -> bool:
        """Whether the hub or the user has a branch of that name."""
        hub = await self._hubs.open(project)
        ref = f"refs/heads/{branch}"
        return bool(await self._hubs.ref(hub, ref) or await self._user.ref(project, ref))

    async def worktree(self, project: Project, agent: Agent, /) -> tuple[str, str]:
        """Make or verify an agent's worktree. Returns its path and the commit of main it starts from."""
        path = self.worktree_path(project, agent)
        async with self._locks(path):
            head = await self._worktrees.ensure(project, agent) or await self._snapshots.branch(project, agent)
        hub = await self._hubs.open(project)
        return path, await self._hubs.merge_base(hub, f"refs/heads/{project.main}", head)

    async def renew(self, project: Project, agent: Agent, /, *, at: str = "") -> str:
        """Let an agent begin anew, in place, at main or at another commit that the hub has.

        What has not landed is kept: returns the ref that brings it back. What git ignores stays there. Raises
        NotAllowed where something can neither be saved nor stay.
        """
        async with self._locks(self.worktree_path(project, agent)):
            return await self._renewals.renew(project, agent, at)

    async def branch(self, project: Project, agent: Agent, /) -> str:
        """Take an agent's branch into the hub, as it is now. Returns its commit; nothing if it has no worktree."""
        async with self._locks(self.worktree_path(project, agent)):
            there = self.has_worktree(project, agent)
            return await self._snapshots.branch(project, agent) if there else ""

    async def checkout(self, project: Project, /) -> str:
        """The user's checkout as it is, as a commit that the hub has."""
        async with self._locks(project.path):
            return await self._snapshots.checkout(project)

    async def hide(self, project: Project, agent: Agent, names: Sequence[str], /) -> None:
        """Let these paths of an agent's worktree never count as work."""
        async with self._locks(self.worktree_path(project, agent)):
            await self._worktrees.hide(project, agent, names)

    async def record_extra_files(self, project: Project, agent: Agent, /) -> None:
        """Remember what a new worktree has besides the repository's files: it was given to the agent."""
        async with self._locks(self.worktree_path(project, agent)):
            await self._snapshots.record_extra_files(project, agent)

    async def files(self, project: Project, /) -> tuple[Sequence[str], bool]:
        """The files of main, and whether there are more than were asked for."""
        hub = await self._hubs.open(project)
        asked = ("ls-tree", "-r", "-z", "--name-only", "--full-tree", f"refs/heads/{project.main}")
        said = await self._git.ours(hub, *asked, limit=LONGEST_LISTING, cut=True)
        names = said.names[:-1] if said.cut else said.names
        return [shown(name) for name in names], said.cut

    async def locks(self, project: Project, agent: Agent, /) -> Mapping[str, str]:
        """The lock files on an agent's branch, each with the id of its content."""
        return await self.trees.named(project, f"refs/heads/{agent.branch}", LOCK_FILES)

    def worktree_path(self, project: Project, agent: Agent, /) -> str:
        return str(self._places.worktree(project, agent))

    def has_worktree(self, project: Project, agent: Agent, /) -> bool:
        """Whether there is a folder, and no link, at its place, and something in it."""
        return is_inhabited(self._places.worktree(project, agent))

    def reach(self, project: Project, agent: Agent, /) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The hub, whose objects its clone borrows; and the folder of the settings that stand for the user's."""
        return (str(self._places.hub(project)),), (str(self._places.settings(project, agent).parent),)

    def environment(self, project: Project, agent: Agent, /) -> dict[str, str]:
        """Variables that keep an agent's own git away from the user's settings."""
        return self._worktrees.environment(project, agent)

    async def look(self, project: Project, agent: Agent, run: str, /) -> WorktreeState:
        """Take the branch and a snapshot of an agent's worktree into the hub; show the branch to the user."""
        hub = await self._hubs.open(project)
        async with self._locks(self.worktree_path(project, agent)):
            sight = await self._snapshots.see(project, agent)
            snapshot = await self._snapshots.keep(hub, sight, f"refs/windlass/snapshots/{key(agent)}/{run}")
            tree = await self._described(hub, sight, snapshot)
            if agent.permissions is not Permissions.READ:  # who only reads has nothing to show
                await self._showing.show(project, hub, agent.branch, sight.head, new=bool(tree.commits))
        return tree

    async def quick_look(self, project: Project, agent: Agent, /) -> QuickLook:
        """An agent's work as it is now, for comparing: shown to nobody, and only kept until the next quick look."""
        async with self._locks(self.worktree_path(project, agent)):
            return await self._quick_looks.quick_look(project, agent)

    async def since(self, project: Project, base: str, /) -> QuickLook:
        """What main has become since a commit, as if that were someone's work."""
        return await self._quick_looks.since(project, base)

    async def clash(self, project: Project, one: QuickLook, other: QuickLook, /) -> tuple[str, ...]:
        """The files in which two works can't be merged, or git's words about it; nothing if they can."""
        return await self._quick_looks.clash(project, one, other)

    async def stage(
        self, project: Project, head: str, message: str, /, *, onto: str = "", shape: LandingShape = LandingShape.MERGE
    ) -> Candidate:
        """Bring a commit onto main, or onto a candidate, without a checkout. Raises Conflict, with it as text."""
        return await self._gateway.stage(project, head, message, onto=onto, shape=shape)

    async def land(self, project: Project, /, *stack: Candidate) -> Landing:
        """Move main to the last of these. Raises Conflict if main has moved, NotAllowed with git's reason."""
        return await self._gateway.land(project, *stack)

    async def receipt(self, project: Project, candidate: Candidate, /) -> Landing:
        """The receipt of a candidate that main has, or had. Moves nothing."""
        return await self._gateway.receipt(project, candidate)

    async def landed(self, project: Project, commit: str, /) -> bool:
        """Whether main already contains this commit."""
        main = await self._hubs.main(project)
        hub = await self._hubs.open(project)
        known = await self._git.ours(hub, "merge-base", "--is-ancestor", commit, main, ok=ANY)
        return known.code == 0

    async def take(self, project: Project, branch: str, /) -> tuple[str, str]:
        """Keep a branch of the user's in the hub, as it is now. Returns its commit and that one's first line."""
        return await self._hubs.take(project, branch)

    async def revert(self, project: Project, landing: Landing, branch: str, message: str, /) -> str:
        """Make the commit that takes a landing back, on a branch of the hub.

        It stands on the landed merge and has the tree from before it: merged onto main, it undoes just that.
        """
        if landing.before == landing.after:
            raise NotAllowed("This landing changed nothing, so there is nothing to take back.")
        hub = await self._hubs.open(project)
        author = (await self._user.habits(project.path)).environment
        made = await self._git.ours(
            hub,
            *("commit-tree", f"{landing.before}^{{tree}}", "-p", landing.after, "-F", "-"),
            stdin=message.replace("\0", "").encode("utf-8", "replace") or b"Undo",
            extra=author,
        )
        await self._git.ours(hub, "update-ref", f"refs/heads/{branch}", made.text)
        return made.text

    async def diff(self, project: Project, agent: Agent, /) -> str:
        """What an agent has changed since main, as it is in its worktree now; of its branch, if that is gone."""
        hub = await self._hubs.open(project)
        async with self._locks(self.worktree_path(project, agent)):
            try:
                sight = await self._snapshots.see(project, agent)
                main, head, now = sight.main, sight.head, sight.tree
            except NotFound:
                main = await self._hubs.main(project)
                head = now = await self._hubs.ref(hub, f"refs/heads/{agent.branch}")
                if not head:
                    raise
        base = await self._hubs.merge_base(hub, main, head)
        return await self.diff_between(project, base, now)

    async def diff_between(self, project: Project, before: str, after: str, /) -> str:
        """What lies between two commits or trees of the hub; cut where it is very long."""
        hub = await self._hubs.open(project)
        how = ("--no-ext-diff", "--no-textconv", "--no-color")
        said = await self._git.ours(hub, "diff", *how, before, after, limit=LONGEST_DIFF, cut=True)
        return said.out.decode("utf-8", "replace") + ("\n… (cut)\n" if said.cut else "")

    async def diff_of(self, project: Project, head: str, /) -> str:
        """What a commit of the hub has changed since it left main; cut where it is very long."""
        main, hub = await self._hubs.main(project), await self._hubs.open(project)
        return await self.diff_between(project, await self._hubs.merge_base(hub, main, head), head)

    async def remove_worktree(self, project: Project, agent: Agent, /) -> str:
        """Snapshot, then remove. Returns the ref that brings it back; raises NotAllowed where that can't cover all.

        What was removed already, before a crash could tell of it, gives the same ref again.
        """
        hub = await self._hubs.open(project)
        path = self._places.worktree(project, agent)
        async with self._locks(str(path)):
            taken = await self._snapshots.rescues(hub, agent)
            if taken and not all_there(path, [""]):
                return rescue_ref(agent, taken)
            sight = await self._snapshots.see(project, agent)
            if holes := (*sight.holes, *await self._snapshots.ignored(project, agent)):
                raise NotAllowed(
                    f"The worktree of {agent.id} is kept, because a snapshot cannot hold all of it: {_some(holes)}.",
                    hint=f"Look at {path}, and move what you need.",
                )
            ref = await self._snapshots.rescue(project, agent, hub, sight)
            gone = path.with_name(f"{GONE}{path.name}")
            await asyncio.to_thread(remove_tree, gone)
            path.rename(gone)
            self._places.index(project, agent).unlink(missing_ok=True)
            remove_tree(self._places.glimpse(project, agent))
            await asyncio.to_thread(remove_tree, gone)
        return ref

    async def sweep(self) -> None:
        """Remove what a killed daemon had half made, or had saved and half removed; only before anything has begun."""
        ours = "hubs/*.git/windlass"
        for pattern in (
            f"worktrees/*/{GONE}*",
            f"worktrees/*/{NEW}*",
            f"hubs/{NEW}*",
            f"{ours}/tmp*",
            f"{ours}/glimpses",
        ):
            for path in self._home.glob(pattern):
                await asyncio.to_thread(remove_tree, path)

    async def _described(self, hub: Path, sight: SeenWorktree, snapshot: str) -> WorktreeState:
        counted, (changed, untracked) = await asyncio.gather(
            self._git.ours(hub, "rev-list", "--count", f"{sight.main}..{sight.head}"),
            self._snapshots.differences(hub, sight.head, sight.tree),
        )
        return WorktreeState(
            head=sight.head,
            branch=sight.branch,
            commits=int(counted.text),
            changed=changed,
            untracked=untracked,
            snapshot=snapshot,
            holes=sight.holes,
        )


def _some(holes: Sequence[str]) -> str:
    more = f"; and {len(holes) - MOST_NAMED} more" if len(holes) > MOST_NAMED else ""
    return "; ".join(holes[:MOST_NAMED]) + more
