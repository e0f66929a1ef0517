"""Putting exactly one commit's tree at a path, for checks to run on."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from windlass.core.errors import Unavailable
from windlass.core.nouns.project import Project
from windlass.git.files import beside, config_text, exclude_pattern, exists, make_folder, remove_tree, shown
from windlass.git.hub import Hubs
from windlass.git.program import GitProgram
from windlass.git.user_repository import UserRepository
from windlass.git.worktrees.clone import Clones, settings_lines
from windlass.git.worktrees.untrusted import is_folder


class CheckTrees:
    """Trees that checks run in. Their `.git` is made anew each time: foreign code may have written to it."""

    def __init__(self, git: GitProgram, hubs: Hubs, user: UserRepository) -> None:
        self._git = git
        self._hubs = hubs
        self._user = user
        self._clones = Clones(git, hubs)

    async def place(self, project: Project, commit: str, path: Path, *, keep: Sequence[str] = ()) -> bool:
        """A tree that git can't repair is made anew."""
        hub = await self._hubs.open(project)
        kept = all(exists(path / name) for name in keep)
        try:
            await self._reset(hub, commit, path, keep)
        except Unavailable:
            await self.clear(path)
            await self._reset(hub, commit, path, ())
            kept = not keep
        await self._give_git(project, hub, commit, path)
        return kept

    async def clear(self, path: Path) -> None:
        await asyncio.to_thread(remove_tree, path)
        _index(path).unlink(missing_ok=True)

    async def leftovers(self, project: Project, path: Path) -> tuple[str, ...]:
        hub = await self._hubs.open(project)
        said = await self._git.ours(hub, "ls-files", "-z", "-o", "--directory", cwd=path, extra=_at(path))
        return tuple(name.decode("utf-8", "surrogateescape") for name in said.names)

    async def named(self, project: Project, commit: str, name: re.Pattern[str]) -> dict[str, str]:
        hub = await self._hubs.open(project)
        found: dict[str, str] = {}
        for entry in (await self._git.ours(hub, "ls-tree", "-r", "-z", "--full-tree", commit)).names:
            facts, _, path = entry.partition(b"\t")
            if name.fullmatch(shown(path.rpartition(b"/")[2])):
                found[shown(path)] = facts.split()[2].decode()
        return found

    def reach(self, project: Project) -> tuple[str, ...]:
        """The hub's objects, which the tree's `.git` borrows."""
        return (str(self._hubs.objects(project)),)

    async def settings(self, project: Project) -> str:
        return config_text(settings_lines(await self._user.settings(project.path)))

    async def _reset(self, hub: Path, commit: str, path: Path, keep: Iterable[str]) -> None:
        if not is_folder(path):
            await self.clear(path)
            make_folder(path)
        remove_tree(path / ".git")
        spare = [part for name in keep for part in ("-e", exclude_pattern(name))]
        await self._git.ours(hub, "read-tree", "--reset", "-u", commit, cwd=path, extra=_at(path))
        await self._git.ours(hub, "clean", "-q", "-ffdx", *spare, cwd=path, extra=_at(path))

    async def _give_git(self, project: Project, hub: Path, commit: str, path: Path) -> None:
        """A `.git` of its own, because many checks ask git something. Nothing is written by name where code was run."""
        settings = await self._user.settings(project.path)
        excludes = self._hubs.excludes(project, settings)
        with beside(path) as made:
            await self._clones.make(hub, made, project.main, commit=commit, settings=settings, excludes=excludes)
            shutil.copy2(_index(path), made / ".git" / "index")
            (made / ".git").rename(path / ".git")


def _index(path: Path) -> Path:
    return path.with_name(f"{path.name}.index")


def _at(path: Path) -> dict[str, str]:
    return {"GIT_WORK_TREE": str(path), "GIT_INDEX_FILE": str(_index(path))}
