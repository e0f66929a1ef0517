"""Checkouts of main that are kept ready: in a large repository, an agent takes one instead of waiting for a new one."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from windlass.core.nouns.agent import Agent
from windlass.core.nouns.project import Project
from windlass.git.files import GONE, beside, remove_tree
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

    async def keep(self, project: Project, room: int, like: Agent | None) -> None:
        """Keep as many ready as the room has bytes for, in a repository as large as an agent's worktree shows it."""
        folder, size = self._places.spares(project), 0
        if like is not None and room > 0 and _is_large(self._places.index(project, like)):
            size = await asyncio.to_thread(_size, self._places.worktree(project, like))
        if not size:
            await self._remove(_all(folder))
            return
        hub, how = await self._hubs.open(project), _how(self._places.hub(project))
        fitting = min(MOST_SPARES, room // size, shutil.disk_usage(hub).free // (SHARE_OF_DISK * size))
        wanted = [folder / f"{how}-{number}" for number in range(fitting)]
        await self._remove(spare for spare in _all(folder) if spare not in wanted)
        for spare in wanted:
            if not spare.exists():
                await self._make(project, hub, spare)

    async def _make(self, project: Project, hub: Path, spare: Path) -> None:
        main = await self._hubs.main(project)
        with beside(spare) as made:
            (made / "files").mkdir(parents=True, mode=0o700)
            await self.fill(hub, made / "files", made / "index", main)
            made.rename(spare)

    def take(self, project: Project, hub: Path, made: Path) -> None:
        """If one is ready, put its files at a path, and its index into the `.git` there."""
        ready = [spare for spare in _all(self._places.spares(project)) if spare.name.startswith(_how(hub))]
        if ready:
            claimed = ready[0].rename(made.with_name("spare"))
            (claimed / "files").rename(made)
            (made / ".git").mkdir(mode=0o700)
            (claimed / "index").rename(made / ".git" / "index")

    async def fill(self, hub: Path, files: Path, index: Path, commit: str) -> None:
        """Bring files and their index to a commit. Git works on the hub, where no filter is defined."""
        extra = {"GIT_WORK_TREE": str(files), "GIT_INDEX_FILE": str(index)}
        filling = ("-c", "checkout.workers=0", "read-tree", "--reset", "-u", commit)
        await self._git.ours(hub, *filling, cwd=files, extra=extra)

    async def _remove(self, spares: Iterable[Path]) -> None:
        """Rename each first: nobody may take one while it is removed."""
        for spare in list(spares):
            with suppress(FileNotFoundError):  # someone has just taken it
                await asyncio.to_thread(remove_tree, spare.rename(spare.with_name(f"{GONE}{spare.name}")))


def _all(folder: Path) -> list[Path]:
    return sorted(spare for spare in folder.iterdir() if not spare.name.startswith(".")) if folder.is_dir() else []


def _how(hub: Path) -> str:
    """The settings that files were written with: with others, such as other ends of lines, they would differ."""
    return hashlib.sha256((hub / "windlass.config").read_bytes()).hexdigest()[:12]


def _is_large(index: Path) -> bool:
    return index.is_file() and index.stat().st_size >= SMALL_INDEX


def _size(folder: Path) -> int:
    """Bytes that the files in a folder take on the disk, as far as they can be looked at."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += (Path(place) / name).lstat().st_blocks * 512
    return total
