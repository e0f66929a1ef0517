"""Reading files that an agent can write: no link is followed, nothing blocks, sizes are bounded."""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from windlass.core.errors import Unavailable

LARGEST = 8 << 20
_COMMIT = re.compile(rb"(?:[0-9a-f]{40}|[0-9a-f]{64})")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_inside(root: Path, inner: str, limit: int = LARGEST) -> bytes | None:
    """The regular file at `inner` below a folder; nothing if it is missing, too large, or anything else."""
    *folders, name = inner.split("/")
    with ExitStack() as opened:
        try:
            at = _open(opened, root, _FOLDER, None)
            for folder in folders:
                at = _open(opened, folder, _FOLDER, at)
            file = _open(opened, name, _FILE, at)
            facts = os.fstat(file)
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > limit:
                return None
            with os.fdopen(os.dup(file), "rb") as stream:
                return stream.read(limit)
        except OSError:
            return None


def write_inside(root: Path, inner: str, content: bytes) -> None:
    """Put a file in place below a folder, in one step; a link on the way, or at its place, is never followed."""
    if read_inside(root, inner) == content:
        return
    *folders, name = inner.split("/")
    draft = f".{name}.{secrets.token_hex(8)}"
    with ExitStack() as opened:
        try:
            at = _open(opened, root, _FOLDER, None)
            for folder in folders:
                at = _open(opened, folder, _FOLDER, at)
            with os.fdopen(os.open(draft, _NEW, 0o600, dir_fd=at), "wb") as stream:
                stream.write(content)
            os.replace(draft, name, src_dir_fd=at, dst_dir_fd=at)
        except OSError as error:
            raise Unavailable(f"{root / inner} could not be written: {error.strerror}.") from error


def is_folder(path: Path) -> bool:
    """Whether this is a real folder, and not a link to one."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


def is_inhabited(path: Path) -> bool:
    """Whether this is a real folder with more in it than a late signal, which brings folders of its own."""
    try:
        return is_folder(path) and any(each.name != ".windlass" for each in path.iterdir())
    except OSError:
        return False


def remove_locks(worktree: Path) -> None:
    """Remove what a killed git of the agent's has left behind; only where none of its processes lives any more."""
    try:
        with ExitStack() as opened:
            top = _open(opened, ".git", _FOLDER, _open(opened, worktree, _FOLDER, None))
            for place in (".", "refs", "logs"):
                for _, folders, files, at in os.fwalk(place, dir_fd=top):
                    for name in (file for file in files if file.endswith(".lock")):
                        os.unlink(name, dir_fd=at)
                    if place == ".":
                        folders.clear()
    except FileNotFoundError:
        return


def branch_there(worktree: Path) -> str:
    """The branch that is checked out in a clone, or nothing."""
    head = read_inside(worktree, ".git/HEAD", 4096) or b""
    prefix = b"ref: refs/heads/"
    return head.removeprefix(prefix).strip().decode("utf-8", "replace") if head.startswith(prefix) else ""


def commit_at(worktree: Path, ref: str) -> str:
    """The commit that a ref of a clone is at, or nothing."""
    if found := _COMMIT.fullmatch((read_inside(worktree, f".git/{ref}", 4096) or b"").strip()):
        return found[0].decode()
    return dict(_packed(worktree)).get(ref, "")


def commits_kept(worktree: Path) -> dict[str, str]:
    """Every commit that a clone keeps by a name: branches, tags, stashes, a detached head."""
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


def _open(opened: ExitStack, path: Path | str, flags: int, at: int | None) -> int:
    descriptor = os.open(path, flags, dir_fd=at)
    opened.callback(os.close, descriptor)
    return descriptor
