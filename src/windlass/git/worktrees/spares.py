"""Checkouts of main that are kept ready: in a large repository, an agent takes one instead of waiting for a new one."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from pathlib import Path

from windlass.core.nouns.agent import Agent
from windlass.core.nouns.project import Project
from windlass.git.files import beside, remove_tree
from windlass.git.hub import Hubs
from windlass.git.paths import HubPaths
from windlass.git.program import GitProgram

SMALL_INDEX = 100_000
"""Bytes of an index of some thousand files: a checkout of fewer takes no time worth saving."""
MOST_SPARES = 2
SHARE_OF_DISK = 10
"""A checkout is kept only while so many more would fit on the disk."""


class Spares:
    """Checkouts that no agent has seen. Each has its files, and the index that git wrote for them."""

    def __init__(self, git: GitProgram, places: HubPaths, hubs: Hubs) -> None:
        self._git = git
        self._places = places
        self._hubs = hubs

    async def keep(self, project: Project, agent: Agent, room: int) -> None:
        """Keep as many ready as the room has bytes for, in a repository as large as this agent's worktree shows it."""
        index = self._places.index(project, agent)
        if room <= 0 or not index.is_file() or index.stat().st_size < SMALL_INDEX:
            await self.drop(project)
            return
        folder, hub = self._places.spares(project), await self._hubs.open(project)
        how = _how(hub)
        for old in [spare for spare in _all(folder) if not spare.name.startswith(how)]:
            await asyncio.to_thread(remove_tree, old)
        for number in range(MOST_SPARES):
            spare = folder / f"{how}-{number}"
            if not spare.exists() and not await self._make(project, hub, spare, room // (number + 1)):
                return

    async def _make(self, project: Project, hub: Path, spare: Path, room: int) -> bool:
        """Make one; returns whether the room and the disk have space for it."""
        main = await self._hubs.main(project)
        with beside(spare) as made:
            (made / "files").mkdir(parents=True, mode=0o700)
            await self.fill(hub, made / "files", made / "index", main)
            size = await asyncio.to_thread(_size, made)
            if size > room or shutil.disk_usage(made).free < SHARE_OF_DISK * size:
                return False
            made.rename(spare)
        return True

    def take(self, project: Project, hub: Path, made: Path) -> bool:
        """Put the files of a checkout at a path, and its index into the `.git` there, if one is ready."""
        for spare in _all(self._places.spares(project)):
            claimed = made.with_name("spare")
            if spare.name.startswith(_how(hub)):
                spare.rename(claimed)
                (claimed / "files").rename(made)
                (made / ".git").mkdir(mode=0o700)
                (claimed / "index").rename(made / ".git" / "index")
                return True
        return False

    async def fill(self, hub: Path, files: Path, index: Path, commit: str) -> None:
        """Bring files and their index to a commit. Git works on the hub, where no filter is defined."""
        extra = {"GIT_WORK_TREE": str(files), "GIT_INDEX_FILE": str(index)}
        filling = ("-c", "checkout.workers=0", "read-tree", "--reset", "-u", commit)
        await self._git.ours(hub, *filling, cwd=files, extra=extra)

    async def drop(self, project: Project) -> None:
        """Keep none."""
        for spare in _all(self._places.spares(project)):
            await asyncio.to_thread(remove_tree, spare)


def _all(folder: Path) -> list[Path]:
    return sorted(spare for spare in folder.iterdir() if not spare.name.startswith(".")) if folder.is_dir() else []


def _how(hub: Path) -> str:
    """The settings that files were written with: with others, such as other ends of lines, they would differ."""
    return hashlib.sha256((hub / "windlass.config").read_bytes()).hexdigest()[:12]


def _size(folder: Path) -> int:
    """Bytes that a folder takes on the disk."""
    return sum((Path(place) / name).lstat().st_blocks * 512 for place, _, names in os.walk(folder) for name in names)
