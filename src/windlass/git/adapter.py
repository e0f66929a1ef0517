"""The git port: a project's repository, the hub beside it, and the worktrees of its agents."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from windlass.core.errors import NotAllowed, NotFound, Unavailable, WindlassError
from windlass.core.nouns.agent import Agent, Permissions
from windlass.core.nouns.change import Landing
from windlass.core.nouns.project import Project
from windlass.core.radar.collisions import QuickLook
from windlass.core.runs.workdir import WorktreeState
from windlass.core.runs.worktree_setup import LOCK_FILES
from windlass.git.files import GONE, NEW, exists, remove_tree, shown
from windlass.git.hub import Hubs, Locks
from windlass.git.inspect import Inspection
from windlass.git.landing.forward import CheckoutMoves
from windlass.git.landing.land import MainLanding
from windlass.git.landing.mixed_tree import MixedTrees
from windlass.git.landing.show_branch import BranchDisplay
from windlass.git.paths import HubPaths, key
from windlass.git.program import ANY, GitProgram, no_step
from windlass.git.quick_look import QuickLooks
from windlass.git.user_repository import UserRepository
from windlass.git.worktrees.check_trees import CheckTrees
from windlass.git.worktrees.renew import WorktreeRenewal
from windlass.git.worktrees.repair import HubRepair
from windlass.git.worktrees.saved_work import LONGEST_DIFF, HubArchive
from windlass.git.worktrees.snapshot import SeenWorktree, Snapshots, rescue_ref
from windlass.git.worktrees.untrusted import commit_at, is_inhabited
from windlass.git.worktrees.worktree import Worktrees

log = logging.getLogger("windlass")

MOST_NAMED = 10
LONGEST_LISTING = 4 << 20
MOST_LOOSE = 32
"""Removed worktrees, each with some refs and objects in files of their own, before those are packed."""


class HubGit:
    """The `Git` port, on the git program that is installed."""

    def __init__(
        self,
        home: Path,
        *,
        environment: Mapping[str, str],
        now: Callable[[], float] = time.time,
        step: Callable[[str], None] = no_step,
    ) -> None:
        self._home = home
        self._places = HubPaths(home)
        repair = HubRepair(GitProgram(environment, step), self._places)
        self._git = GitProgram(environment, step, repair.mend)
        self._user = UserRepository(self._git, environment)
        self._hubs = Hubs(self._git, self._places, self._user, repair.watch)
        self._worktrees = Worktrees(self._git, self._places, self._hubs, self._user)
        self._snapshots = Snapshots(self._git, self._places, self._hubs)
        self._renewal = WorktreeRenewal(self._git, self._places, self._hubs, self._worktrees, self._snapshots)
        self._quick_looks = QuickLooks(self._git, self._places, self._hubs, self._snapshots)
        self._branches = BranchDisplay(self._git, self._hubs, self._user)
        self._locks = Locks()
        self.archive = HubArchive(self._git, self._places, self._hubs, self._user, repair)
        self.trees = CheckTrees(self._git, self._hubs, self._user)
        """Trees for checks."""
        inspection = Inspection(self._git, self._user, home)
        moves = CheckoutMoves(self._git, self._places, self._user)
        landing = MainLanding(self._git, self._hubs, self._user, moves, now=now, landed=inspection.landed)
        mixed = MixedTrees(self._git, self._hubs)
        # The methods of the port that need no lock of a worktree are those of the parts.
        self.locate, self.inspect = inspection.locate, inspection.inspect
        self.main, self.take = self._hubs.main, self._hubs.take
        self.environment = self._worktrees.environment
        self.since, self.clash = self._quick_looks.since, self._quick_looks.clash
        self.stage, self.land, self.receipt = landing.stage, landing.land, landing.receipt
        self.texts, self.links, self.mixed = mixed.texts, mixed.links, mixed.mixed

    def close(self) -> None:
        """End the gits that stay."""
        self._git.close()

    async def absence(self, project: Project, /) -> str:
        return await asyncio.to_thread(self._user.absence, project)  # a disk may keep one waiting

    async def delete_hub(self, project: Project, /) -> None:
        await self.keep_spares(project, 0)
        await self._hubs.delete(project)

    async def keep_spares(self, project: Project, room: int, /, *, like: Agent | None = None) -> None:
        async with self._locks(str(self._places.spares(project))):
            try:
                await self._worktrees.spares.keep(project, room, like)
            except OSError as error:
                raise Unavailable(f"No checkout of {project.name} could be kept ready: {error.strerror}.") from error

    async def branch_taken(self, project: Project, branch: str, /) -> bool:
        hub = await self._hubs.open(project)
        ref = f"refs/heads/{branch}"
        return bool(await self._hubs.ref(hub, ref) or await self._user.ref(project, ref))

    async def worktree(self, project: Project, agent: Agent, /) -> tuple[str, str]:
        path = self.worktree_path(project, agent)
        async with self._locks(path):
            head = await self._worktrees.ensure(project, agent) or await self._snapshots.branch(project, agent)
        hub = await self._hubs.open(project)
        return path, await self._hubs.merge_base(hub, f"refs/heads/{project.main}", head)

    async def renew(self, project: Project, agent: Agent, /, *, at: str = "") -> str:
        async with self._locks(self.worktree_path(project, agent)):
            return await self._renewal.renew(project, agent, at)

    async def branch(self, project: Project, agent: Agent, /) -> str:
        async with self._locks(self.worktree_path(project, agent)):
            if await self.has_worktree(project, agent):
                return await self._snapshots.branch(project, agent)
        return await self._hubs.ref(await self._hubs.open(project), f"refs/heads/{agent.branch}")

    async def commit_there(self, project: Project, agent: Agent, /) -> str:
        return commit_at(self._places.worktree(project, agent), f"refs/heads/{agent.branch}")

    async def checkout(self, project: Project, /) -> str:
        async with self._locks(project.path):
            return await self._snapshots.checkout(project)

    async def hide(self, project: Project, agent: Agent, names: Sequence[str], /) -> None:
        async with self._locks(self.worktree_path(project, agent)):
            await self._worktrees.hide(project, agent, names)

    async def record_extra_files(self, project: Project, agent: Agent, /) -> None:
        async with self._locks(self.worktree_path(project, agent)):
            await self._snapshots.record_extra_files(project, agent)

    async def files(self, project: Project, /) -> tuple[Sequence[str], bool]:
        hub = await self._hubs.open(project)
        asked = ("ls-tree", "-r", "-z", "--name-only", "--full-tree", f"refs/heads/{project.main}")
        said = await self._git.ours(hub, *asked, limit=LONGEST_LISTING, cut=True)
        names = said.names[:-1] if said.cut else said.names
        return [shown(name) for name in names], said.cut

    async def locks(self, project: Project, agent: Agent, /) -> Mapping[str, str]:
        return await self.trees.named(project, f"refs/heads/{agent.branch}", LOCK_FILES)

    def worktree_path(self, project: Project, agent: Agent, /) -> str:
        return str(self._places.worktree(project, agent))

    async def has_worktree(self, project: Project, agent: Agent, /) -> bool:
        """Whether the worktree is a folder, not a link, and not empty."""
        return is_inhabited(self._places.worktree(project, agent))

    def reach(self, project: Project, agent: Agent, /) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """To read: the hub, whose objects the clone borrows. To write: the folder of the agent's git settings."""
        return (str(self._places.hub(project)),), (str(self._places.settings(project, agent).parent),)

    async def look(self, project: Project, agent: Agent, run: str, /) -> WorktreeState:
        hub = await self._hubs.open(project)
        async with self._locks(self.worktree_path(project, agent)):
            sight = await self._snapshots.look(project, agent)
            snapshot = await self._snapshots.commit(hub, sight, {})
            refs = {**sight.moves, f"refs/windlass/snapshots/{key(agent)}/{run}": snapshot}
            tree = await self._described(hub, sight, snapshot)
            if agent.permissions is Permissions.READ:  # who only reads has nothing to show
                await self._hubs.put(hub, refs)
            else:
                await self._branches.show(project, hub, agent.branch, sight.head, new=bool(tree.commits), also=refs)
        return tree

    async def quick_look(self, project: Project, agent: Agent, /) -> QuickLook:
        async with self._locks(self.worktree_path(project, agent)):
            return await self._quick_looks.quick_look(project, agent)

    async def landed(self, project: Project, commit: str, /) -> bool:
        main, hub = await self._hubs.main(project), await self._hubs.open(project)
        return (await self._git.ours(hub, "merge-base", "--is-ancestor", commit, main, ok=ANY)).code == 0

    async def revert(self, project: Project, landing: Landing, branch: str, message: str, /) -> str:
        """Its parent is the landed merge and its tree the one before: merged onto main, it undoes just that landing."""
        if landing.before == landing.after:
            raise NotAllowed("This landing changed nothing, so there is nothing to take back.")
        hub = await self._hubs.open(project)
        author = (await self._user.settings(project.path)).environment
        made = await self._git.ours(
            hub,
            *("commit-tree", f"{landing.before}^{{tree}}", "-p", landing.after, "-F", "-"),
            stdin=message.replace("\0", "").encode("utf-8", "replace") or b"Undo",
            extra=author,
        )
        await self._hubs.put(hub, {f"refs/heads/{branch}": made.text})
        return made.text

    async def diff(self, project: Project, agent: Agent, /) -> str:
        """The changes in an agent's worktree since main; of its branch, if the worktree is gone."""
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
        """The changes between two commits or trees of the hub; a very long diff is cut."""
        hub = await self._hubs.open(project)
        how = ("--no-ext-diff", "--no-textconv", "--no-color")
        said = await self._git.ours(hub, "diff", *how, before, after, limit=LONGEST_DIFF, cut=True)
        return said.out.decode("utf-8", "replace") + ("\n… (cut)\n" if said.cut else "")

    async def diff_of(self, project: Project, head: str, /) -> str:
        main, hub = await self._hubs.main(project), await self._hubs.open(project)
        return await self.diff_between(project, await self._hubs.merge_base(hub, main, head), head)

    async def remove_worktree(self, project: Project, agent: Agent, /) -> str:
        """Snapshot a worktree and remove it. Returns the ref that brings it back; after a crash, the same ref again."""
        hub = await self._hubs.open(project)
        path = self._places.worktree(project, agent)
        async with self._locks(str(path)):
            taken = self._snapshots.rescues(hub, agent)
            if taken and not exists(path):
                return rescue_ref(agent, taken)
            sight, holes = await self._snapshots.see_all(project, agent)
            if holes:
                more = f"; and {len(holes) - MOST_NAMED} more" if len(holes) > MOST_NAMED else ""
                some = "; ".join(holes[:MOST_NAMED]) + more
                raise NotAllowed(
                    f"The worktree of {agent.id} is kept, because a snapshot cannot hold all of it: {some}.",
                    hint=f"Look at {path}, and move what you need.",
                )
            ref = await self._snapshots.rescue(project, agent, hub, sight)
            gone = path.with_name(f"{GONE}{path.name}")
            await asyncio.to_thread(remove_tree, gone)
            path.rename(gone)
            self._snapshots.forget(project, agent)
            self._places.index(project, agent).unlink(missing_ok=True)
            remove_tree(self._places.quick_look(project, agent))
            await asyncio.to_thread(remove_tree, gone)
        await self._pack(project, hub)
        return ref

    async def _pack(self, project: Project, hub: Path) -> None:
        """Pack a hub after many removals, unless something is taken in just now; it can be done as well later."""
        if _loose_rescues(hub) < MOST_LOOSE or self._locks.any_held:
            return
        try:
            await self._hubs.pack(project)
        except WindlassError as error:
            log.warning("the hub of %s could not be packed: %s", project.name, error)

    async def sweep(self) -> None:
        """Remove what a killed daemon left half made or half removed. Call it before anything else."""
        kept = ("hubs/*.git/windlass/tmp*", "hubs/*.git/windlass/glimpses", f"hubs/{NEW}*")
        half = (
            f"{room}/*/{name}*"
            for room in ("worktrees", "checks")
            for name in (GONE, NEW, f".spares/{GONE}", f".spares/{NEW}")
        )
        for pattern in (*half, *kept):
            for path in self._home.glob(pattern):
                try:
                    await asyncio.to_thread(remove_tree, path)
                except Unavailable as error:  # someone may hold it open, and write to it
                    log.warning("%s", error)

    async def _described(self, hub: Path, sight: SeenWorktree, snapshot: str) -> WorktreeState:
        commits = await self._hubs.commits(hub, sight.main, sight.head)
        changed, untracked = await self._snapshots.differences(hub, sight.head, sight.tree)
        return WorktreeState(
            head=sight.head,
            branch=sight.branch,
            commits=len(commits),
            changed=(*changed, *(file.name for file in sight.unsaved if file.tracked)),
            untracked=untracked,
            snapshot=snapshot,
            holes=sight.holes,
            unsaved=tuple(map(str, sight.unsaved)),
            refused=sight.refused,
        )


def _loose_rescues(hub: Path) -> int:
    """Agents whose removed worktrees have refs in files of their own."""
    return len([*hub.glob("refs/windlass/rescue/*")])
