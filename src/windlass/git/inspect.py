"""Whether Windlass can work on a repository, and which branch is its main."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path

from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput, NotAllowed
from windlass.core.nouns.project import Project
from windlass.git.files import folder_exists
from windlass.git.program import ANY, GitProgram, Ran
from windlass.git.user_repository import UserRepository

NESTED = b"160000"
"""The mode of a nested repository in a tree."""
_LFS = re.compile(rb"(?m)^\s*[^#\s].*\sfilter=lfs(?:\s|$)")


class Inspection:
    """Looks at repositories of the user's; a good one is not read again until its main moves."""

    def __init__(self, git: GitProgram, user: UserRepository, home: Path) -> None:
        self._git = git
        self._user = user
        self._home = home
        self._good: dict[str, tuple[str, str]] = {}
        """By the repository's top: its main, and the commit of it at which the repository was good."""
        self._tops: dict[str, tuple[int, ...]] = {}
        """Folders that are the top of a repository, as git has said, and the files that made it say so."""

    async def locate(self, path: str) -> str:
        await self._git.require()
        top = path if path in self._tops and self._tops[path] == _marks(path) else await self._ask(path)
        if _inside(top, self._home / "worktrees"):
            raise NotAllowed(f"{top} is an agent's worktree.", hint="Run this in your own checkout.")
        return top

    async def _ask(self, path: str) -> str:
        marks = _marks(path)
        top = await _top(self._git, self._user, path)
        if top == path and marks:
            self._tops[top] = marks
        return top

    async def inspect(self, top: str, /, *, main: str = "") -> str:
        if await self._user.is_partial(top):
            raise _unhandled(top, "a partial clone", "Fetch it all: git fetch --refetch --no-filter")
        there = await self._git.object_of_theirs(top, f"refs/heads/{main}") if main else None
        if there and there.name and self._good.get(top) == (main, there.name):
            return main
        branches = await self._user.branches(top)
        main = await _main(self._git, self._user, top, main, branches)
        if self._good.get(top) != (main, branches[main]):
            await _refuse_what_we_cannot_do(self._git, top, branches[main])
            self._good[top] = main, branches[main]
        return main

    def landed(self, project: Project, before: str, after: str) -> None:
        """A change has landed, of which staging has refused what is refused here: main is as good as before."""
        if self._good.get(project.path) == (project.main, before):
            self._good[project.path] = project.main, after


def _marks(top: str) -> tuple[int, ...]:
    """What tells a folder's own `.git` and its settings from any other; nothing where it has none."""
    try:
        folder, settings = os.lstat(f"{top}/.git"), os.lstat(f"{top}/.git/config")
    except (OSError, ValueError):
        return ()
    marks = (folder.st_dev, folder.st_ino, folder.st_uid, settings.st_ino, settings.st_mtime_ns, settings.st_size)
    return marks if stat.S_ISDIR(folder.st_mode) else ()


def _inside(path: str, folder: Path) -> bool:
    return Path(path).resolve().is_relative_to(folder.resolve())


async def _top(git: GitProgram, user: UserRepository, path: str) -> str:
    """The primary worktree of the repository, so that it is one project from wherever it is asked for."""
    if not path.startswith("/"):
        raise BadInput(f"{path[:200]!r} is not the absolute path of a folder.")
    if not folder_exists(path):
        raise BadInput(f"There is no folder {path[:200]}.")
    asked = ("--is-bare-repository", "--is-inside-work-tree", "--show-toplevel", "--path-format=absolute")
    said = await git.theirs(path, "rev-parse", *asked, "--git-common-dir", ok=ANY)
    bare, inside, top, common = (*said.out.split(b"\n"), b"", b"", b"", b"")[:4]
    if said.code and not bare:
        raise _refusal(path, said)
    if bare == b"true" and inside != b"true":
        raise BadInput(f"{path} is a bare repository.", hint="Go to a checkout of it: `git clone` makes one.")
    if said.code:
        raise BadInput(f"{path} is inside a .git folder.", hint="Go to the checkout that it belongs to.")
    if common == top + b"/.git":
        return os.fsdecode(top)
    primary = (await user.checkouts(os.fsdecode(top)))[0]
    return os.fsdecode(top) if primary.bare else primary.path


def _refusal(path: str, said: Ran) -> BadInput:
    if "dubious ownership" in said.err or "unsafe repository" in said.err:
        return BadInput(
            f"git does not trust {path}, because it belongs to another user.",
            hint=f"If you trust it: git config --global --add safe.directory '{path}'",
        )
    if "not a git repository" in said.err:
        return BadInput(f"{path} is not in a git repository.", hint="Go to one, or make one: git init && git commit")
    return BadInput(f"git cannot read the repository at {path}: {said.words}.")


async def _main(git: GitProgram, user: UserRepository, top: str, wanted: str, branches: Collection[str]) -> str:
    if not branches:
        raise BadInput(f"{top} has no commits yet.", hint="Make the first one: git add -A && git commit")
    if wanted and wanted not in branches:
        hint = near_miss(wanted, branches) or "Name the branch to land on: `windlass config set project.main BRANCH`."
        raise BadInput(f"{top} has no branch {wanted!r}.", hint=hint)
    main = wanted or await _guess(git, user, top, branches)
    if not main:
        raise BadInput(
            f"{top} has a detached HEAD and no branch that is plainly its main one.",
            hint="Name it: `windlass config set project.main BRANCH`.",
        )
    if main == "work" or main.startswith("work/"):
        raise BadInput(
            f"{main!r} cannot be the main branch: agents' branches are called work/NAME.",
            hint="Name another: `windlass config set project.main BRANCH`.",
        )
    return main


async def _guess(git: GitProgram, user: UserRepository, top: str, branches: Collection[str]) -> str:
    """Try the remote's HEAD, then the user's default branch, then the usual names, then the checked-out branch."""
    remote = (await git.theirs(top, "symbolic-ref", "-q", "refs/remotes/origin/HEAD", ok=(0, 1, 128))).text
    usual = (await user.settings(top)).default_branch
    here = (await git.theirs(top, "symbolic-ref", "-q", "--short", "HEAD", ok=(0, 1, 128))).text
    wishes = (remote.removeprefix("refs/remotes/origin/"), usual, "main", "master", here)
    return next((wish for wish in wishes if wish in branches), "")


async def _refuse_what_we_cannot_do(git: GitProgram, top: str, commit: str) -> None:
    listing = (await git.theirs(top, "ls-tree", "-r", "-z", "--full-tree", commit)).names
    entries = [(*entry.partition(b"\t")[0].split()[::2], entry.partition(b"\t")[2]) for entry in listing]

    async def read(blob: str) -> bytes:
        return (await git.theirs(top, "cat-file", "blob", blob)).out

    if found := await unsupported(entries, read):
        raise _unhandled(top, found[1])


async def unsupported(
    entries: Sequence[tuple[bytes, ...]], read: Callable[[str], Awaitable[bytes]]
) -> tuple[bytes, str] | None:
    """Of a tree's entries (mode, object, name), one that Windlass does not handle yet, and what it belongs to."""
    for mode, _, name in entries:
        if name == b".gitmodules" or mode == NESTED:
            return name, "submodules"
    for _, blob, name in entries:
        if name.rpartition(b"/")[2] == b".gitattributes" and _LFS.search(await read(blob.decode())):
            return name, "Git LFS"
    return None


def _unhandled(top: str, what: str, hint: str = "Use a repository without them for now.") -> BadInput:
    return BadInput(f"{top} uses {what}, which Windlass does not handle yet.", hint=hint)
