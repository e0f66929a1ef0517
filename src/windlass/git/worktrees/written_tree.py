"""Writing the files of a worktree as a tree, through an index of ours."""

from __future__ import annotations

import asyncio
import os
import re
import stat
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from windlass.core.errors import Conflict
from windlass.git.files import copy_or_clear, shown
from windlass.git.program import ANY, GitProgram
from windlass.git.worktrees.untrusted import LARGEST_INDEX, read_inside

LARGEST_FILE = 50 << 20
_STUCK = re.compile(r"Unable to process path (.+)")
_IGNORED = re.compile(r"Ignoring path (.+)")
_CLOSED = re.compile(r"could not open directory '(.+?)(?:/?': |$)", re.MULTILINE)
"""Git cuts its line at some length: then the name is only the beginning of the folder's."""
_NESTED = b"H 160000 "
_MOST_STUCK = 50


@dataclass(frozen=True, slots=True)
class Unsaved:
    """A file as it lies there that a snapshot can't hold."""

    name: str
    why: str
    tracked: bool

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


@dataclass(frozen=True, slots=True)
class WrittenTree:
    """The files of a worktree as a tree, and what can't be in it."""

    tree: str
    nested: list[bytes]
    unsaved: list[Unsaved]


class WorktreeFiles:
    """Adds what differs in a worktree to an index; no setting, filter or driver that is planted there executes."""

    def __init__(self, git: GitProgram) -> None:
        self._git = git

    async def write(self, hub: Path, worktree: Path, index: Path, head: str, apart: Mapping[str, str]) -> WrittenTree:
        """Bring our index to the branch, add what differs in the worktree, write it. Also what can't be added."""
        work = index.with_name(f"{index.name}.now")
        copy_or_clear(index, work)
        extra = {"GIT_WORK_TREE": str(worktree), "GIT_INDEX_FILE": str(work), **apart}
        if (await self._git.ours(hub, "read-tree", "--reset", head, extra=extra, ok=ANY)).code:
            work.unlink(missing_ok=True)
            await self._git.ours(hub, "read-tree", "--reset", head, extra=extra)
        # What is as it was committed is known as such from now on, and needs no second look.
        asked = ("update-index", "-q", "--ignore-submodules", "--refresh")
        await self._git.ours(hub, *asked, cwd=worktree, extra=extra, ok=(0, 1))
        nested, unsaved, added = await self._add(hub, worktree, extra)
        tree = (await self._git.ours(hub, "write-tree", extra=extra)).text if added else ""
        work.replace(index)
        return WrittenTree(tree or await self._git.tree_of(hub, head), nested, unsaved)

    async def _add(self, hub: Path, worktree: Path, extra: dict[str, str]) -> tuple[list[bytes], list[Unsaved], bool]:
        """Add what differs to our index. Returns the nested repositories in it, what can't be added, and if any was."""
        questions = (
            ("diff-files", "-z", "--name-status", "--ignore-submodules=all"),
            ("ls-files", "-z", "-t", "-s", "-c", "-o", "--exclude-standard"),
        )
        asking = (self._git.ours(hub, *question, cwd=worktree, extra=extra) for question in questions)
        changed, listed = await asyncio.gather(*asking)
        new = [entry[2:] for entry in listed.names if entry.startswith(b"? ")]
        known = [entry.partition(b"\t") for entry in listed.names if not entry.startswith(b"? ")]
        nested = [name for facts, _, name in known if facts.startswith(_NESTED)]
        gone = [name for kind, name in changed.pairs if kind == b"D"]
        there = [name for kind, name in changed.pairs if kind != b"D"] + new
        there += await self._staged(hub, worktree, extra, {*there, *gone, *(name for _, _, name in known)})
        fit, problems = await asyncio.to_thread(_sort, worktree, there)
        tracked = {name for _, name in changed.pairs}
        same = await self._as_committed(hub, worktree, extra, [name for name in problems if name in tracked])
        if gone:
            await self._update(hub, worktree, extra, "--force-remove", gone)
        problems |= await self._add_fit(hub, worktree, extra, fit + same)
        closed = [Unsaved(name, "an unreadable folder", tracked=False) for name in _CLOSED.findall(listed.err)]
        found = [Unsaved(shown(name), why, name in tracked) for name, why in problems.items() if name not in same]
        return nested, found + closed, bool(gone or fit or same)

    async def _as_committed(self, hub: Path, worktree: Path, extra: dict[str, str], names: list[bytes]) -> list[bytes]:
        """Of tracked files that are too large for a snapshot, those that are as they were committed."""
        if not names:
            return []
        listed = (await self._git.ours(hub, "ls-files", "-s", "-z", extra=extra)).names
        ids = {name: facts.split()[1] for facts, _, name in (entry.partition(b"\t") for entry in listed)}
        known = [name for name in names if name in ids and b"\n" not in name]
        asked = b"".join(ids[name] + b"\n" for name in known)
        sizes = await self._git.ours(hub, "cat-file", "--batch-check=%(objectsize)", stdin=asked, extra=extra)
        # Only a file of the same size is read: a larger one may have no end.
        there = [str(_size(worktree, name)) for name in known]
        alike = [name for name, size, now in zip(known, sizes.text.splitlines(), there, strict=True) if size == now]
        paths = b"".join(name + b"\n" for name in alike)
        hashed = await self._git.ours(
            hub, "hash-object", "--stdin-paths", cwd=worktree, stdin=paths, extra=extra, ok=ANY
        )
        return [name for name, found in zip(alike, hashed.out.split(), strict=False) if ids[name] == found]

    async def _staged(self, hub: Path, worktree: Path, extra: dict[str, str], seen: set[bytes]) -> list[bytes]:
        """Ignored files that the agent has added by force: only its own index names them, which is read as data."""
        with tempfile.NamedTemporaryFile(dir=hub / "windlass") as copied:
            copied.write(read_inside(worktree, ".git/index", LARGEST_INDEX) or b"")
            copied.flush()
            own = extra | {"GIT_INDEX_FILE": copied.name}
            theirs = await self._git.ours(hub, "ls-files", "-z", "--cached", extra=own, ok=ANY)
        return [] if theirs.code else [name for name in theirs.names if name not in seen]

    async def _add_fit(self, hub: Path, worktree: Path, extra: dict[str, str], fit: list[bytes]) -> dict[bytes, str]:
        """Add files. Returns those that git refuses: without one, the others are tried again."""
        refused: dict[bytes, str] = {}
        while fit and len(refused) < _MOST_STUCK:
            complaint = await self._update(hub, worktree, extra, "--add", fit)
            refused |= {name.encode(): "a name that git does not take" for name in _IGNORED.findall(complaint)}
            stuck = _STUCK.search(complaint)
            if not stuck:
                return refused
            named = [name for name in fit if shown(name) == stuck[1]] or [stuck[1].encode()]
            refused |= dict.fromkeys(named, "unreadable")
            fit = [name for name in fit if name not in refused]
        return refused

    async def _update(self, hub: Path, worktree: Path, extra: dict[str, str], how: str, names: Iterable[bytes]) -> str:
        args = ("update-index", how, "--replace", "--remove") if how == "--add" else ("update-index", how)
        stdin = b"".join(name + b"\0" for name in names)
        ran = await self._git.ours(hub, *args, "-z", "--stdin", cwd=worktree, stdin=stdin, extra=extra, ok=(0, 128))
        if ran.code and not _STUCK.search(ran.err):
            raise Conflict(f"The files of {worktree} could not be taken in: {ran.words}.")
        return ran.err


def _sort(worktree: Path, names: list[bytes]) -> tuple[list[bytes], dict[bytes, str]]:
    """Which files a snapshot can hold, and why not the others."""
    problems = {name: _problem(os.fsencode(worktree) + b"/" + name, name) for name in names}
    return [name for name, why in problems.items() if not why], {name: why for name, why in problems.items() if why}


def _size(worktree: Path, name: bytes) -> int:
    """The size of a plain file, or of nothing else."""
    try:
        facts = os.lstat(os.fsencode(worktree) + b"/" + name)
    except OSError:
        return -1
    return facts.st_size if stat.S_ISREG(facts.st_mode) else -1


def _problem(path: bytes, name: bytes) -> str:
    if name.endswith(b"/"):
        return "a nested repository"
    try:
        facts = os.lstat(path)
    except OSError:
        return ""
    if stat.S_ISDIR(facts.st_mode):
        return "a nested repository"
    if not stat.S_ISREG(facts.st_mode) and not stat.S_ISLNK(facts.st_mode):
        return "neither a file nor a link"
    if facts.st_size > LARGEST_FILE:
        return f"larger than {LARGEST_FILE >> 20} MB"
    return ""
