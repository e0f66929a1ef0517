"""A quick look at agents' work, and whether two works could be merged. It leaves nothing in the hub.

Looks are taken many times an hour and nothing in a hub is ever pruned: so the objects of each look stay in a folder of
their own, which the next look at the same agent empties, and the objects of a merge are thrown away at once.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path

from windlass.core.errors import Unavailable
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.project import Project
from windlass.core.radar.collisions import QuickLook
from windlass.git.files import make_folder, remove_tree, shown
from windlass.git.hub import Hubs, own_objects
from windlass.git.landing.merge import merge
from windlass.git.paths import HubPaths
from windlass.git.program import GitProgram
from windlass.git.worktrees.snapshot import Snapshots

_ALWAYS = {"GIT_AUTHOR_DATE": "1000000000 +0000", "GIT_COMMITTER_DATE": "1000000000 +0000"}
"""The same work gives the same commit, whenever it is looked at."""


class QuickLooks:
    """Looks at works, and merges two of them only to see whether they conflict."""

    def __init__(self, git: GitProgram, places: HubPaths, hubs: Hubs, snapshots: Snapshots) -> None:
        self._git = git
        self._places = places
        self._hubs = hubs
        self._snapshots = snapshots

    async def quick_look(self, project: Project, agent: Agent) -> QuickLook:
        """Compare an agent's worktree with the commit of main that its branch left."""
        hub = await self._hubs.open(project)
        kept = self._places.quick_look(project, agent)
        await asyncio.to_thread(remove_tree, kept)
        make_folder(kept)
        apart = own_objects(hub, kept) | _ALWAYS
        sight = await self._snapshots.see(project, agent, apart=apart)
        commit, base = await asyncio.gather(
            self._snapshots.commit(hub, sight, apart), self._hubs.merge_base(hub, sight.main, sight.head)
        )
        return await self._describe(hub, apart, base, head=sight.head, commit=commit, tree=sight.tree, kept=str(kept))

    async def since(self, project: Project, base: str) -> QuickLook:
        hub, tip = await self._hubs.open(project), await self._hubs.main(project)
        tree = await self._git.tree_of(hub, tip)
        return await self._describe(hub, {}, base, head=tip, commit=tip, tree=tree, kept="")

    async def clash(self, project: Project, one: QuickLook, other: QuickLook) -> tuple[str, ...]:
        """The files that can't be merged, or git's messages where it names none."""
        hub = await self._hubs.open(project)
        try:
            with tempfile.TemporaryDirectory(dir=hub / "windlass", ignore_cleanup_errors=True) as folder:
                apart = own_objects(hub, folder, one.kept, other.kept)
                merged = await merge(self._git, hub, one.commit, other.commit, apart=apart)
        except OSError as error:
            raise Unavailable(f"There is no room to merge in {hub}: {error.strerror}.") from error
        return tuple(map(shown, merged.files)) or merged.notes

    async def _describe(
        self, hub: Path, apart: Mapping[str, str], base: str, *, head: str, commit: str, tree: str, kept: str
    ) -> QuickLook:
        asked = ("diff-tree", "-r", "-z", "--no-renames", "--name-status", base, tree)
        kinds: dict[bytes, set[str]] = {b"A": set(), b"D": set(), b"M": set(), b"T": set()}
        for kind, name in (await self._git.ours(hub, *asked, extra=apart)).pairs:
            kinds.setdefault(kind, set()).add(shown(name))
        return QuickLook(
            head=head,
            commit=commit,
            tree=tree,
            base=base,
            added=frozenset(kinds[b"A"]),
            removed=frozenset(kinds[b"D"]),
            edited=frozenset(kinds[b"M"] | kinds[b"T"]),
            kept=kept,
        )
