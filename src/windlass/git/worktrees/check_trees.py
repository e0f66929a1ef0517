"""Putting exactly one commit's tree at a path, for checks to run on."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import shutil
from pathlib import Path

from windlass.core.errors import Unavailable
from windlass.core.nouns.project import Project
from windlass.git.files import GONE, beside, config_text, make_folder, remove_tree, shown
from windlass.git.hub import Hubs
from windlass.git.program import GitProgram
from windlass.git.user_repository import UserRepository
from windlass.git.worktrees.clone import Clones, settings_lines

log = logging.getLogger("windlass")


class CheckTrees:
    """Trees that checks run in. Each is new: code in an old one may have handed its open folder to an agent."""

    def __init__(self, git: GitProgram, hubs: Hubs, user: UserRepository) -> None:
        self._git = git
        self._hubs = hubs
        self._user = user
        self._clones = Clones(git, hubs)

    async def place(self, project: Project, commit: str, path: Path) -> None:
        hub = await self._hubs.open(project)
        await self.clear(path)
        make_folder(path)
        await self._git.ours(hub, "read-tree", "--reset", "-u", commit, cwd=path, extra=_at(path))
        await self._give_git(project, hub, commit, path)

    async def clear(self, path: Path) -> None:
        """Move the folder away and remove it there. Whoever still holds it open and writes to it does not keep us."""
        _index(path).unlink(missing_ok=True)
        await asyncio.to_thread(_put_away, path)

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

    async def _give_git(self, project: Project, hub: Path, commit: str, path: Path) -> None:
        """A `.git` of its own, because many checks ask git something. It is made beside the tree."""
        settings = await self._user.settings(project.path)
        excludes = self._hubs.excludes(project, settings)
        with beside(path) as made:
            await self._clones.make(hub, made, project.main, commit=commit, settings=settings, excludes=excludes)
            shutil.copy2(_index(path), made / ".git" / "index")
            (made / ".git").rename(path / ".git")


def _put_away(path: Path) -> None:
    gone = path.with_name(f"{GONE}{path.name}-{secrets.token_hex(6)}")
    try:
        path.rename(gone)
        remove_tree(gone)
    except FileNotFoundError:
        return
    except Unavailable as error:
        log.warning("%s It is tried again when the daemon starts.", error)


def _index(path: Path) -> Path:
    return path.with_name(f"{path.name}.index")


def _at(path: Path) -> dict[str, str]:
    return {"GIT_WORK_TREE": str(path), "GIT_INDEX_FILE": str(_index(path))}
