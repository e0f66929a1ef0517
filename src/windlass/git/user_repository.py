"""The user's own repository: who they are, where main is, and where it is checked out."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from windlass.core.errors import NotFound
from windlass.core.nouns.project import Project, gone
from windlass.git.files import folder_exists
from windlass.git.program import FSYNC, GitProgram

SOMEONE = ("Windlass agent", "agent@windlass.invalid")
"""The committer where the user has set no name: a commit fails without one."""

_LARGEST_EXCLUDES = 1 << 20

# Git lets go of its own settings when it starts the other side of a transfer, so they are said again here.
# Whose repository it is was asked of the user's own settings when the project was added.
_OTHER_SIDE = (
    "git -c 'safe.directory=*' -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.alternateRefsCommand=true"
    " -c gc.auto=0"
)
UPLOAD = f"--upload-pack={_OTHER_SIDE} upload-pack"
RECEIVE = (
    f"--receive-pack={_OTHER_SIDE} -c core.fsync={FSYNC} -c core.fsyncMethod=batch"
    " -c receive.autogc=false -c receive.fsckObjects=false -c transfer.fsckObjects=false"
    " -c receive.denyCurrentBranch=refuse -c receive.denyNonFastForwards=false receive-pack"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserGitSettings:
    """The few settings of the user's that an agent's git takes over."""

    name: str
    email: str
    autocrlf: str = ""
    eol: str = ""
    default_branch: str = "main"
    excludes: str = ""
    """The patterns that the user never wants to see in any repository."""

    @property
    def environment(self) -> dict[str, str]:
        """The user as author and committer."""
        return {
            "GIT_AUTHOR_NAME": self.name,
            "GIT_AUTHOR_EMAIL": self.email,
            "GIT_COMMITTER_NAME": self.name,
            "GIT_COMMITTER_EMAIL": self.email,
        }


@dataclass(frozen=True, slots=True)
class Checkout:
    """One of the user's working trees."""

    path: str
    branch: str
    bare: bool = False
    prunable: bool = False


@dataclass(frozen=True, slots=True)
class KnownConfig:
    """The settings of a repository, with the files that they are from and could be from."""

    files: tuple[Path, ...]
    facts: tuple[tuple[int, ...], ...]
    values: Mapping[str, str]


class UserRepository:
    """Questions to the repository at a project's path."""

    def __init__(self, git: GitProgram, environment: Mapping[str, str]) -> None:
        self._git = git
        self._home_folder = Path(environment.get("HOME") or "/")
        self._settings_folder = Path(environment.get("XDG_CONFIG_HOME") or self._home_folder / ".config")
        self._known: dict[str, KnownConfig] = {}

    def absence(self, project: Project) -> str:
        """Why the repository is not where it was, seen on the disk alone: git would look in the folders above, too."""
        if not folder_exists(project.path):
            return gone(project.path, folder=False)
        git = Path(project.path, ".git")
        try:  # a linked worktree has a file instead, which names the folder
            place = git if git.is_dir() else Path(project.path, git.read_text("utf-8").partition("gitdir:")[2].strip())
            there = (place / "HEAD").exists()
        except (OSError, ValueError):
            there = False
        return "" if there else gone(project.path, folder=True)

    async def tip(self, project: Project) -> str:
        """The commit of the user's main."""
        name = f"refs/heads/{project.main}^{{commit}}"
        known = await self._git.object_of_theirs(project.path, name)
        if known and known.name:
            return known.name
        found = await self._git.theirs(project.path, "rev-parse", "--verify", "-q", name, ok=(0, 1))
        if found.code:
            raise NotFound(
                f"{project.path} has no branch {project.main}.",
                hint="Name the branch to land on: `windlass config set project.main BRANCH`.",
            )
        return found.text

    async def ref(self, project: Project, ref: str) -> str:
        """The commit of a ref of the user's, or nothing."""
        known = await self._git.object_of_theirs(project.path, ref)
        if known is not None:
            return known.name
        return (await self._git.theirs(project.path, "rev-parse", "--verify", "-q", ref, ok=(0, 1))).text

    async def branches(self, path: str) -> dict[str, str]:
        """The commits of all branches of the user's, by name."""
        said = await self._git.theirs(path, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads/")
        pairs = (line.partition(" ")[::2] for line in said.text.splitlines())
        return {ref.removeprefix("refs/heads/"): commit for commit, ref in pairs}

    async def contains(self, project: Project, commit: str, ancestor: str) -> bool:
        """Whether a commit has another one in its history; a commit that is gone is not in it."""
        asked = ("merge-base", "--is-ancestor", ancestor, commit)
        return (await self._git.theirs(project.path, *asked, ok=(0, 1, 128))).code == 0

    async def settings(self, path: str) -> UserGitSettings:
        """The settings in force in the user's repository."""
        found = await self._config(path)
        return UserGitSettings(
            name=found.get("user.name", "").strip() or SOMEONE[0],
            email=found.get("user.email", "").strip() or SOMEONE[1],
            autocrlf=found.get("core.autocrlf", ""),
            eol=found.get("core.eol", ""),
            default_branch=found.get("init.defaultbranch", "") or "main",
            excludes=self._excludes(found.get("core.excludesfile", "")),
        )

    async def is_partial(self, path: str) -> bool:
        """Whether some of a repository's objects are not in it."""
        return any(_PARTIAL.fullmatch(name) for name in await self._config(path))

    async def _config(self, path: str) -> Mapping[str, str]:
        """Every setting in force. Git is asked again when a file has changed that has some, or may get some."""
        known = self._known.get(path)
        if known and known.facts == _facts(known.files):
            return known.values
        own = (Path(path, ".git", name) for name in ("config", "config.worktree", "HEAD"))
        usual = (*own, self._home_folder / ".gitconfig", self._settings_folder / "git/config", Path("/etc/gitconfig"))
        before = _facts(usual)
        said = (await self._git.theirs(path, "config", "--list", "--show-origin", "-z")).names
        files, values = dict.fromkeys(usual), dict[str, str]()
        for origin, entry in zip(said[::2], said[1::2], strict=True):
            name, _, value = entry.decode("utf-8", "surrogateescape").partition("\n")
            file = Path(path, os.fsdecode(origin.removeprefix(b"file:")))
            files[file], values[name] = None, value
            if name.startswith(("include.", "includeif.")):  # what it names may come to be
                files[file.parent / value.replace("~", str(self._home_folder), value.startswith("~/"))] = None
        if _facts(usual) == before:
            self._known[path] = KnownConfig(tuple(files), _facts(files), values)
        return values

    async def checkouts(self, path: str) -> list[Checkout]:
        """All working trees of the user's repository, the primary one first."""
        said = await self._git.theirs(path, "worktree", "list", "--porcelain", "-z")
        return [_checkout(part.split(b"\0")) for part in said.out.split(b"\0\0") if part.strip(b"\0")]

    async def occupied(self, project: Project) -> str:
        """Why main cannot move now although nobody has it checked out: it is being rebased or bisected."""
        common = Path(project.path, ".git")
        if not folder_exists(common):
            said = await self._git.theirs(project.path, "rev-parse", "--path-format=absolute", "--git-common-dir")
            common = Path(os.fsdecode(said.out.rstrip(b"\n")))
        for folder in (common, *sorted((common / "worktrees").glob("*"))):
            for file, doing in _BUSY.items():
                if _names_branch(folder / file, project.main):
                    return f"{project.main} is being {doing} ({folder / file})"
        return ""

    def _excludes(self, configured: str) -> str:
        path = Path(configured) if configured else self._settings_folder / "git/ignore"
        if configured.startswith("~/"):
            path = self._home_folder / configured[2:]
        try:
            return path.read_bytes()[:_LARGEST_EXCLUDES].decode("utf-8", "replace") if path.is_file() else ""
        except OSError:
            return ""


def _facts(files: Iterable[Path]) -> tuple[tuple[int, ...], ...]:
    """What changes when one of these files does."""
    return tuple(map(_fact, files))


def _fact(file: Path) -> tuple[int, ...]:
    try:
        facts = file.stat()
    except OSError:
        return ()
    return facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


_PARTIAL = re.compile(r"extensions\.partialclone|remote\..*\.promisor", re.DOTALL)
_BUSY = {
    "rebase-merge/head-name": "rebased",
    "rebase-apply/head-name": "rebased",
    "rebase-merge/update-refs": "rebased",
    "BISECT_START": "bisected",
}


def _names_branch(file: Path, branch: str) -> bool:
    try:
        lines = file.read_text("utf-8", "replace").splitlines()
    except OSError:
        return False
    return branch in lines or f"refs/heads/{branch}" in lines


def _checkout(lines: list[bytes]) -> Checkout:
    facts = dict(line.partition(b" ")[::2] for line in lines)
    branch = facts.get(b"branch", b"").decode("utf-8", "replace").removeprefix("refs/heads/")
    return Checkout(os.fsdecode(facts.get(b"worktree", b"")), branch, b"bare" in facts, b"prunable" in facts)
