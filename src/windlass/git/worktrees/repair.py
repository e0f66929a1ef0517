"""Damaged and missing objects of a hub: found, put back from where they still are, or set aside with their refs."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import struct
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

from windlass.core.errors import WindlassError
from windlass.core.nouns.project import Project
from windlass.git.files import make_folder
from windlass.git.paths import HubPaths
from windlass.git.program import ANY, GitProgram
from windlass.git.worktrees.untrusted import lent_objects
from windlass.system.files import write_whole

log = logging.getLogger("windlass")

SELDOM = 3600.0
"""Seconds between two searches of a whole hub: what an agent's clone lacks looks like damage, too."""

_ID = re.compile(r"\b[0-9a-f]{40}(?:[0-9a-f]{24})?\b")
_MISSING = re.compile(r"missing \w+ ([0-9a-f]+)(?: \((.+)\))?")
_TOLD = re.compile(r"[0-9a-f]{40}|bad object|valid object|necessary objects")
_INDEX = struct.Struct(">8s256I")
_INDEX_MARK = b"\xfftOc\0\0\0\2"
_FSCK = ("fsck", "--full", "--no-dangling", "--no-reflogs", "--no-progress", "--name-objects")


class HubRepair:
    """Puts objects back into hubs, from the user's repository or an agent's clone.

    Only what a hub has had is put back: objects whose damaged copy it holds, and those that its refs lead to. Else an
    agent could name any object of the user's, and we would fetch it.
    """

    def __init__(self, git: GitProgram, places: HubPaths, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._git = git
        self._places = places
        self._monotonic = monotonic
        self._projects: dict[str, Project] = {}
        self._searched: dict[str, float] = {}

    def watch(self, project: Project) -> None:
        """From now on, what this project's hub lacks is looked for."""
        self._projects[str(self._places.hub(project))] = project

    async def mend(self, hub: str, complaint: str) -> bool:
        """Mend what git complains about. Returns whether trying again may help."""
        project = self._projects.get(hub)
        if project is None or not _TOLD.search(complaint):
            return False
        if await self._mend_named(project, complaint):
            return True
        if self._monotonic() - self._searched.get(hub, -SELDOM) < SELDOM:
            return False
        self._searched[hub] = self._monotonic()
        lacking, _ = await self._search(project, "--connectivity-only")
        return await self._put_back(project, lacking)

    async def examine(self, project: Project) -> list[str]:
        """Search the whole hub, and mend what can be mended. Returns what is lost, with the ref that leads to it."""
        lacking, complaint = await self._search(project)
        while await self._mend_named(project, complaint) or await self._put_back(project, lacking):
            lacking, complaint = await self._search(project)
        return [f"{name or 'a ref'}: {key} is missing" for key, name in lacking.items()]

    def set_aside(self, project: Project) -> list[str]:
        """The refs that were set aside, each with the object that it had."""
        file = self._places.aside(project)
        return file.read_text("utf-8").splitlines() if file.is_file() else []

    async def _search(self, project: Project, *how: str) -> tuple[dict[str, str], str]:
        """The objects that refs lead to and that are not there, each with its way; and all that git complains about."""
        said = await self._git.ours(self._places.hub(project), *_FSCK, *how, ok=ANY)
        return dict(_MISSING.findall(said.out.decode("utf-8", "replace"))), said.err

    async def _mend_named(self, project: Project, complaint: str) -> bool:
        """Mend the objects of the hub that git names, and refs that lead nowhere."""
        hub = self._places.hub(project)
        held = {name for name in _ID.findall(complaint) if _holds(hub, name)}
        return await self._put_back(project, held) or await self._mend_tips(project)

    async def _put_back(self, project: Project, names: Collection[str]) -> bool:
        """Write damaged objects anew. One that is nowhere is moved away: git goes on without it more often."""
        hub = self._places.hub(project)
        sound = await self._read(hub, names)
        bad = [name for name in names if name not in sound]
        found = await self._find(project, bad) if bad else {}
        for name, content in found.items():
            _write(hub, name, content)
            log.warning("put back a damaged object of %s: %s", hub, name)
        moved = [name for name in bad if name not in found and _move_away(hub, name, self._places.damaged(project))]
        return bool(found or moved)

    async def _mend_tips(self, project: Project) -> bool:
        """Set refs aside whose object is missing and is nowhere: one of them is in the way of every other change."""
        hub = self._places.hub(project)
        listed = await self._git.ours(hub, "for-each-ref", "--format=%(objectname) %(refname)")
        tips = [line.partition(" ")[::2] for line in listed.text.splitlines()]
        asked = "".join(f"{name}\n" for name, _ in tips).encode()
        there = await self._git.ours(hub, "cat-file", "--batch-check=%(objecttype)", stdin=asked) if tips else listed
        lost = {name for name in there.text.split("\n") if name.endswith(" missing")}
        bad = [(name, ref) for name, ref in tips if f"{name} missing" in lost]
        await self._put_back(project, [name for name, _ in bad])
        for name, ref in bad:
            if not _path(hub, name).exists():
                await self._set_aside(project, ref, name)
        return bool(bad)

    async def _set_aside(self, project: Project, ref: str, name: str) -> None:
        """Write a ref down, and remove it."""
        with self._places.aside(project).open("a", encoding="utf-8") as file:
            file.write(f"{ref} at {name}\n")
        await self._git.ours(self._places.hub(project), "update-ref", "-d", ref, name)
        log.warning("set a ref of %s aside, because its object is gone: %s at %s", project.name, ref, name)

    async def _find(self, project: Project, names: Collection[str]) -> dict[str, bytes]:
        """Look for objects in the user's repository and in the agents' clones."""
        asked = "".join(f"{name}\n" for name in names).encode()
        try:
            said = await self._git.theirs(project.path, "cat-file", "--batch", stdin=asked, ok=ANY)
            found = dict(_objects(said.out))
        except WindlassError:  # the repository is gone, or its disk is
            found = {}
        clones = self._places.worktrees(project)
        for worktree in sorted(clones.iterdir()) if clones.is_dir() else ():
            if len(found) < len(names):
                found |= await self._lent(project, worktree, names)
        return found

    async def _lent(self, project: Project, worktree: Path, names: Collection[str]) -> dict[str, bytes]:
        """Look for objects among the own object files of a clone."""
        try:
            async with lent_objects(worktree) as folder:
                return await self._read(self._places.hub(project), names, {"GIT_OBJECT_DIRECTORY": folder})
        except OSError:
            return {}

    async def _read(self, hub: Path, names: Iterable[str], extra: Mapping[str, str] | None = None) -> dict[str, bytes]:
        """Those of these objects that are there and sound."""
        asked = "".join(f"{name}\n" for name in names).encode()
        if not asked:
            return {}
        said = await self._git.ours(hub, "cat-file", "--batch", stdin=asked, extra=extra, ok=ANY, cut=True)
        return dict(_objects(said.out))


def _objects(out: bytes) -> Iterator[tuple[str, bytes]]:
    """The objects in an answer of `cat-file --batch`, as git hashes them, but for those that do not fit their name."""
    while out:
        line, _, out = out.partition(b"\n")
        name, *facts = line.decode("ascii", "replace").split()
        if len(facts) != 2:  # missing
            continue
        kind, size = facts[0], int(facts[1])
        whole, out = f"{kind} {size}\0".encode() + out[:size], out[size + 1 :]
        digest = hashlib.sha1 if len(name) == 40 else hashlib.sha256
        if digest(whole).hexdigest() == name:
            yield name, whole


def _path(hub: Path, name: str) -> Path:
    return hub / "objects" / name[:2] / name[2:]


def _holds(hub: Path, name: str) -> bool:
    """Whether a hub has an object, in a file of its own or in a pack. What git says does not count: an agent's file
    names are in it."""
    return _path(hub, name).exists() or _is_packed(hub, name)


def _is_packed(hub: Path, name: str) -> bool:
    return any(_lists(index, bytes.fromhex(name)) for index in (hub / "objects" / "pack").glob("*.idx"))


def _lists(index: Path, name: bytes) -> bool:
    """Whether a pack's index lists an object: it has a count for each first byte, and then all names in order."""
    with index.open("rb") as file:
        head = file.read(_INDEX.size)
        if len(head) < _INDEX.size or not head.startswith(_INDEX_MARK):
            return False
        counts = (0, *_INDEX.unpack(head)[1:])
        first, end = counts[name[0]], counts[name[0] + 1]
        file.seek(first * len(name), os.SEEK_CUR)
        names = file.read(max(end - first, 0) * len(name))
    return any(names[at : at + len(name)] == name for at in range(0, len(names), len(name)))


def _write(hub: Path, name: str, content: bytes) -> None:
    """Write an object into a file of its own; git takes it where a pack's copy is damaged."""
    place = _path(hub, name)
    make_folder(place.parent)
    write_whole(place, zlib.compress(content), mode=0o444)
    with place.open("rb") as file:
        os.fsync(file.fileno())


def _move_away(hub: Path, name: str, folder: Path) -> bool:
    place = _path(hub, name)
    if not place.exists():
        return False
    make_folder(folder)
    place.rename(folder / name)
    log.warning("moved a damaged object away that is nowhere else: %s", folder / name)
    return True
