"""Files of a clone that its agent can write, read as data: refs, stashes, the checked-out branch, objects."""

from __future__ import annotations

import asyncio
import os
import re
import stat
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from windlass.core.errors import Unavailable
from windlass.git.files import NEW, remove_tree
from windlass.system.files import open_folder, read_file, replace_file

LARGEST = 8 << 20
LARGEST_INDEX = 256 << 20
_OBJECT = re.compile(r"\./(?:[0-9a-f]{2}/[0-9a-f]{38}(?:[0-9a-f]{24})?|pack/pack-[^/]+\.(?:pack|idx))")
"""Files that hold objects. What else git would read in such a folder leads elsewhere, or only says what it holds."""
_COMMIT = re.compile(rb"(?:[0-9a-f]{40}|[0-9a-f]{64})")


def read_inside(root: Path, inner: str, limit: int = LARGEST) -> bytes | None:
    """Read the regular file at `inner` below a folder; None if it is missing, too large, or anything else."""
    *folders, name = inner.split("/")
    try:
        with open_folder(root, *folders) as where:
            content = read_file(where, name, limit + 1)
    except OSError:
        return None
    return content if len(content) <= limit else None


def write_inside(root: Path, inner: str, content: bytes) -> None:
    """Put a file in place below a folder, in one step; a link on the way, or at its place, is never followed."""
    if read_inside(root, inner) == content:
        return
    *folders, name = inner.split("/")
    try:
        with open_folder(root, *folders) as where:
            replace_file(where, name, content, mode=0o600)
    except OSError as error:
        raise Unavailable(f"{root / inner} could not be written: {error.strerror or error}.") from error


def is_folder(path: Path) -> bool:
    """Whether this is a real folder, and not a link to one."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


def is_inhabited(path: Path) -> bool:
    """Whether this is a real folder with more in it than the `.windlass` that a late signal makes."""
    try:
        return is_folder(path) and any(entry.name != ".windlass" for entry in path.iterdir())
    except OSError:
        return False


def remove_locks(worktree: Path) -> None:
    """Remove the lock files that a killed git of the agent's left; only after all its processes have ended."""
    with suppress(FileNotFoundError), open_folder(worktree, ".git") as top:
        for place in (".", "refs", "logs"):
            for _, folders, files, at in os.fwalk(place, dir_fd=top):
                for name in (file for file in files if file.endswith(".lock")):
                    os.unlink(name, dir_fd=at)
                if place == ".":
                    folders.clear()


def branch_there(worktree: Path) -> str:
    """The branch that is checked out in a clone, or nothing."""
    head = read_inside(worktree, ".git/HEAD", 4096) or b""
    prefix = b"ref: refs/heads/"
    return head.removeprefix(prefix).strip().decode("utf-8", "replace") if head.startswith(prefix) else ""


def commit_at(worktree: Path, ref: str) -> str:
    """The commit of a ref in a clone, or nothing."""
    if found := _COMMIT.fullmatch((read_inside(worktree, f".git/{ref}", 4096) or b"").strip()):
        return found[0].decode()
    return dict(_packed(worktree)).get(ref, "")


def commits_kept(worktree: Path) -> dict[str, str]:
    """Every commit that a name in a clone keeps: branches, tags, stashes, a detached head."""
    kept = {ref: commit for ref, commit in _packed(worktree) if not ref.startswith("refs/remotes/")}
    for ref in _loose(worktree):
        if commit := commit_at(worktree, ref):
            kept[ref] = commit
    for number, commit in enumerate(_stashed(worktree)):
        kept[f"refs/stashes/{number}"] = commit
    return kept


def _loose(worktree: Path) -> Iterator[str]:
    """The names of refs in files of their own."""
    yield "HEAD"
    yield "refs/stash"
    root = worktree / ".git"
    for top in ("refs/heads", "refs/tags"):
        if not all(is_folder(root / part) for part in ("", "refs", top)):
            continue
        for folder, _, files in os.walk(root / top):
            yield from (str((Path(folder) / file).relative_to(root)) for file in files)


def _packed(worktree: Path) -> Iterator[tuple[str, str]]:
    for line in (read_inside(worktree, ".git/packed-refs") or b"").splitlines():
        commit, _, ref = line.partition(b" ")
        if _COMMIT.fullmatch(commit):
            yield ref.decode("utf-8", "replace"), commit.decode()


def _stashed(worktree: Path) -> Iterator[str]:
    for line in (read_inside(worktree, ".git/logs/refs/stash") or b"").splitlines():
        _, _, rest = line.partition(b" ")
        if found := _COMMIT.match(rest):
            yield found[0].decode()


@asynccontextmanager
async def lent_objects(worktree: Path) -> AsyncIterator[str]:
    """A folder with the plain object files of a clone, where its agent can't exchange them: for git to read.

    Raises OSError; NotPlain where a link is on the way.
    """
    folder = tempfile.mkdtemp(prefix=NEW, dir=worktree.parent)
    try:
        await asyncio.to_thread(_lend, worktree, Path(folder))
        yield folder
    finally:
        await asyncio.to_thread(remove_tree, Path(folder))


def _lend(worktree: Path, folder: Path) -> None:
    """Give the object files a second name.

    What they hold may change under us, which is found out when it is hashed. No link to a folder is followed; a link to
    a file is looked at when it has its name here, so that nothing can come between.
    """
    with open_folder(worktree, ".git", "objects") as objects:
        for place, folders, files, there in os.fwalk(".", dir_fd=objects):
            found = [file for file in files if _OBJECT.fullmatch(f"{place}/{file}")]
            if found:
                with open_folder(folder, place, make=True) as here:
                    _link_plain(found, there, here)
            if place != ".":
                folders.clear()


def _link_plain(names: Iterable[str], there: int, here: int) -> None:
    for name in names:
        with suppress(FileNotFoundError):  # the agent's git has packed it meanwhile
            os.link(name, name, src_dir_fd=there, dst_dir_fd=here, follow_symlinks=False)
            if not stat.S_ISREG(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=here)
