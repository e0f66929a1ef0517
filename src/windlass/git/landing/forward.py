"""Moving the user's checkout of main to a landed commit; what a failed move has written is put back."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from windlass.core.errors import Conflict, NotAllowed, Unavailable, WindlassError
from windlass.core.nouns.change import Candidate
from windlass.core.nouns.project import Project
from windlass.git.files import exists, folder_exists, remove_tree, shown, write_text
from windlass.git.locks import locked, works_in
from windlass.git.paths import HubPaths
from windlass.git.program import ANY, GitProgram, Ran
from windlass.git.user_repository import UserRepository
from windlass.system.files import open_folder, read_file

log = logging.getLogger("windlass")

PLENTY = 1 << 30
"""Free bytes on a disk that are enough for any change; with fewer, it is counted what a change needs."""
SPARE = 1 << 20
"""Bytes beyond what a change's files and objects need: for the index, folders and logs."""
_BLOCK = 4096
_LARGEST = 256 << 20
_MOST_NAMED = 10
_IN_THE_WAY = ("would be overwritten", "would lose untracked", "not concluded your", "unmerged", "needs merge")
_HOW = ("--ff-only", "--no-overwrite-ignore", "--no-autostash", "--no-squash", "--no-verify-signatures", "-q")


@dataclass(frozen=True, slots=True)
class Move:
    """The move of a checkout from one commit to another that was begun."""

    before: str
    after: str
    checkout: str


class CheckoutMoves:
    """Moves checkouts by git's own fast-forward, which guards the files that the user has changed there."""

    def __init__(self, git: GitProgram, places: HubPaths, user: UserRepository) -> None:
        self._git = git
        self._places = places
        self._user = user

    async def require_room(self, project: Project, candidate: Candidate, folders: Iterable[str]) -> None:
        """Refuse a change that the disks of these folders have no room for."""
        free = min(map(_free, folders))
        if free >= PLENTY:
            return
        hub = self._places.hub(project)
        asked = ("diff-tree", "-r", "-z", "--no-renames", "--diff-filter=d", candidate.before, candidate.commit)
        names = b"".join(facts.split()[3] + b"\n" for facts, _ in (await self._git.ours(hub, *asked)).pairs)
        sizes = await self._git.ours(hub, "cat-file", "--batch-check=%(objectsize)", stdin=names or b"\n")
        files = [int(size) for size in sizes.text.split() if size.isdecimal()]
        needed = 2 * sum(size + _BLOCK for size in files) + SPARE  # as objects, and as files
        if free < needed:
            raise Unavailable(
                f"{project.path} has no room: this change needs {needed >> 10} kB, and {free >> 10} kB are free.",
                hint="Make room on that disk; then it lands by itself.",
            )

    async def forward(self, project: Project, checkout: str, candidate: Candidate) -> None:
        """Move a checkout. It ends at the candidate, or as it was."""
        move = Move(candidate.before, candidate.commit, checkout)
        begun = self._places.move(project)
        write_text(begun, f"{move.before}\n{move.after}\n{move.checkout}\n")
        if await self._branch(checkout) != f"refs/heads/{project.main}":
            begun.unlink()
            raise _left(project)
        ran = await self._git.move_theirs(checkout, "-c", "submodule.recurse=false", "merge", *_HOW, candidate.commit)
        if ran.code:
            refused = _refusal(project, checkout, ran)
            kept = [] if refused else await self._put_back(project, move)
            begun.unlink()
            raise refused or _failure(project, checkout, ran, kept)
        try:
            await self._require_expected(project, move)
        finally:
            begun.unlink()

    async def finish(self, project: Project) -> None:
        """Put back what a move has written that was broken off with the machine, or for lack of room."""
        begun = self._places.move(project)
        if not begun.is_file():
            return
        before, after, checkout = begun.read_text("utf-8", "surrogateescape").removesuffix("\n").split("\n", 2)
        if folder_exists(checkout) and await self._user.tip(project) == before:
            await self._put_back(project, Move(before, after, checkout))
        begun.unlink()

    async def _require_expected(self, project: Project, move: Move) -> None:
        """Git moves on from wherever the checkout is. Where a person has moved main meanwhile, or left it for another
        branch, that goes back to where it was."""
        at = replace(project, path=move.checkout)
        tip, origin = await self._user.tip(project), await self._user.ref(at, "ORIG_HEAD")
        if tip == move.after and origin in ("", move.before):
            return
        if origin and await self._user.ref(at, "HEAD") == move.after:
            await self._git.move_theirs(move.checkout, "reset", "-q", "--keep", origin)
        raise _left(project)

    async def _branch(self, checkout: str) -> str:
        """The branch that a checkout is on, or nothing."""
        return (await self._git.theirs(checkout, "symbolic-ref", "-q", "HEAD", ok=(0, 1))).text

    async def _put_back(self, project: Project, move: Move) -> list[str]:
        """Bring the files that git has written back to what its index says. Returns those that are not git's.

        What git wrote is removed first, which makes room for what was there.
        """
        await self._unlock(move.checkout)
        hub = self._places.hub(project)
        asked = ("diff-tree", "-r", "-z", "--no-renames", move.before, move.after)
        entries = {name: facts.split() for facts, name in (await self._git.ours(hub, *asked)).pairs}
        changed = (await self._git.theirs(move.checkout, "diff-files", "-z", "--name-only", ok=ANY)).names
        known = [name for name in changed if entries.get(name, [b"A"])[-1] != b"A"]
        new = [name for name, facts in entries.items() if facts[-1] == b"A" and _kind(move, name)]
        ours = {name async for name in self._written(move, [*known, *new], entries)}
        for name in ours:
            _remove(move, name)
        back = [name for name in known if not _kind(move, name)]
        stdin = b"".join(name + b"\0" for name in back)
        if back:
            await self._git.theirs(move.checkout, "checkout-index", "-q", "-z", "--stdin", stdin=stdin)
        log.warning("put %d files of %s back after a failed move", len(ours | {*back}), move.checkout)
        return [shown(name) for name in (*known, *new) if name not in ours and name not in back]

    async def _written(
        self, move: Move, names: list[bytes], entries: Mapping[bytes, list[bytes]]
    ) -> AsyncIterator[bytes]:
        """Those of these files that are what git writes for the new commit, or the beginning of it."""
        plain = [name for name in names if b"\n" not in name and _kind(move, name) == stat.S_IFREG]
        paths = b"".join(name + b"\n" for name in plain)
        hashed = await self._git.theirs(move.checkout, "hash-object", "--stdin-paths", stdin=paths, ok=ANY)
        same = dict(zip(plain, hashed.out.split(), strict=False))
        for name in names:
            after = entries[name][3]
            if same.get(name) == after or await self._is_beginning(move, name, after.decode()):
                yield name

    async def _is_beginning(self, move: Move, name: bytes, after: str) -> bool:
        there = _content(move, name)
        if there is None or not after.strip("0"):
            return False
        filtered = ("--filters", f"--path={os.fsdecode(name)}") if _kind(move, name) == stat.S_IFREG else ("blob",)
        whole = await self._git.theirs(move.checkout, "cat-file", *filtered, after, ok=ANY)
        return not whole.code and whole.out.startswith(there)

    async def _unlock(self, checkout: str) -> None:
        """Remove the lock of an index that our own git has left when it was killed. A git that lives keeps its lock."""
        said = await self._git.theirs(checkout, "rev-parse", "--path-format=absolute", "--git-path", "index.lock")
        lock = Path(os.fsdecode(said.out.rstrip(b"\n")))
        if exists(lock) and works_in(checkout):
            raise Unavailable(f"Another git is at work in {checkout}.", hint="It is tried again by itself.")
        remove_tree(lock)


@contextmanager
def _opened(move: Move, name: bytes) -> Iterator[tuple[int, str]]:
    """The open folder of a file, and the file's name in it; no link on the way is followed."""
    *folders, last = os.fsdecode(name).split("/")
    with open_folder(move.checkout, *folders) as where:
        yield where, last


def _kind(move: Move, name: bytes) -> int:
    """The kind of what is there, or 0."""
    try:
        with _opened(move, name) as (where, last):
            return stat.S_IFMT(os.stat(last, dir_fd=where, follow_symlinks=False).st_mode)
    except OSError:
        return 0


def _content(move: Move, name: bytes) -> bytes | None:
    """What a file holds, or where a link leads; None for anything else."""
    try:
        with _opened(move, name) as (where, last):
            if _kind(move, name) == stat.S_IFLNK:
                return os.fsencode(os.readlink(last, dir_fd=where))
            return read_file(where, last, _LARGEST)
    except OSError:
        return None


def _remove(move: Move, name: bytes) -> None:
    """Remove a file, and the folders above it that it leaves empty."""
    with suppress(OSError), _opened(move, name) as (where, last):
        os.unlink(last, dir_fd=where)
    above = PurePosixPath(os.fsdecode(name)).parents
    with suppress(OSError):
        for folder in [*above][:-1]:
            Path(move.checkout, folder).rmdir()


def _free(folder: str) -> int:
    """The bytes that are free on a folder's disk; what can't be asked is found out later."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return PLENTY
    return disk.f_bavail * disk.f_frsize


def _refusal(project: Project, checkout: str, ran: Ran) -> WindlassError | None:
    """Git's reason for leaving a checkout as it is, in our words; None if it has failed on the way."""
    if problem := locked(ran.err):
        return problem
    if any(words in ran.err for words in _IN_THE_WAY):
        return NotAllowed(
            f"Your checkout {checkout} is in the way: {_reason(ran.err)}",
            hint="Commit, stash or move what is named there; then it lands.",
        )
    return moved(project, ran) if "fast-forward" in ran.err else None


def _failure(project: Project, checkout: str, ran: Ran, kept: list[str]) -> Unavailable:
    more = f"; not touched, because it is not what git wrote: {', '.join(kept[:_MOST_NAMED])}" if kept else ""
    return Unavailable(
        f"git could not move {project.main} in {checkout}: {ran.words}. What it had written is put back{more}.",
        hint="Make room there if it lacks room; it is tried again by itself.",
    )


def _left(project: Project) -> Conflict:
    return Conflict(f"{project.main} moved while the change was landing.")


def moved(project: Project, ran: Ran) -> Conflict:
    return Conflict(f"{project.main} has moved since the change was tested: {ran.words}")


def _reason(err: str) -> str:
    """Git's sentence and the files it names, on one line."""
    lines = [line for line in err.splitlines() if line.strip() and not line.startswith(("Please", "Aborting", "hint:"))]
    sentence = " ".join(line.removeprefix("error: ").removeprefix("fatal: ") for line in lines if line[0] != "\t")
    files = ", ".join(line.strip() for line in lines if line[0] == "\t")
    return f"{sentence} {files}".strip()
