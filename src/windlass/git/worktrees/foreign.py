"""What stands in a hub or in an agent's clone and leads elsewhere. Nothing of it is followed; this finds it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from windlass.git.files import exists
from windlass.git.hub import ONLY_FETCHED
from windlass.git.worktrees.untrusted import is_folder, read_inside

_ELSEWHERE = ("objects/info/http-alternates", "info/grafts", "commondir")
"""Files that make git look in another repository, or believe in another history."""
_OUR_REFS = ("refs/heads/", "refs/windlass/")
_OUR_HOOK = "pre-receive"


def foreign_in_hub(hub: Path, refs: Iterable[str]) -> Iterator[str]:
    """Our hub borrows from nobody, and has no refs but branches and our own."""
    for name in ("objects/info/alternates", *_ELSEWHERE):
        if exists(hub / name):
            yield f"{hub / name}: the hub looks elsewhere"
    if not exists(hub / ONLY_FETCHED):
        yield f"{hub}: holds more of your repository than main, until it is opened while no agent has a worktree"
    yield from (f"{hub}: a foreign ref, {ref}" for ref in refs if not ref.startswith(_OUR_REFS))
    yield from (f"{hub / 'hooks' / name}: a foreign hook" for name in _names(hub / "hooks") if name != _OUR_HOOK)
    yield from _links(hub, "objects", "refs")


def foreign_in_clone(worktree: Path, hub: Path) -> Iterator[str]:
    """A clone is a folder, and borrows objects from its hub alone."""
    clone = worktree / ".git"
    if not is_folder(clone):
        if exists(clone):
            yield f"{clone}: not a folder"
        return
    borrowed = read_inside(worktree, ".git/objects/info/alternates")
    if borrowed is None or borrowed.splitlines() != [os.fsencode(hub / "objects")]:
        yield f"{clone}/objects/info/alternates: not the hub alone"
    yield from (f"{clone / name}: the clone looks elsewhere" for name in _ELSEWHERE if exists(clone / name))
    yield from _links(clone, "objects", "refs", "HEAD", "packed-refs", "index")


def _links(top: Path, *names: str) -> Iterator[str]:
    """Links, pipes and devices at these names and below them."""
    for name in names:
        if exists(top / name) and _is_odd(top / name):
            yield f"{top / name}: neither a file nor a folder"
        for place, folders, files in os.walk(top / name):
            odd = (path for entry in (*folders, *files) if _is_odd(path := Path(place, entry)))
            yield from (f"{path}: neither a file nor a folder" for path in odd)


def _is_odd(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if is_folder(folder) else []
