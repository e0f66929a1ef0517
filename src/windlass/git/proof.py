"""Asking git again for all that was true when a change landed. Nothing is written, not even an object of the hub."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from windlass.core.archive import Proof, Whereabouts
from windlass.core.change import Change, Landing
from windlass.core.errors import Unavailable
from windlass.core.project import Project
from windlass.git.files import there
from windlass.git.hub import quoted
from windlass.git.places import Places
from windlass.git.run import ANY, GitProgram

_NAME = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MOVE = re.compile(rb"([0-9a-f]+) .*@\{(\d+)\}")


@dataclass(frozen=True, slots=True)
class Commit:
    """What stands in a commit."""

    tree: str
    parents: tuple[str, ...]
    made_at: float


async def commits(git: GitProgram, hub: Path, names: Iterable[str]) -> dict[str, Commit]:
    """Those of these commits that the hub has."""
    asked = "".join(f"{each}\n" for each in set(names) if _NAME.fullmatch(each)).encode()
    if not asked:
        return {}
    said = await git.ours(hub, "cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=asked)
    present = "".join(f"{line.split()[0]}\n" for line in said.text.splitlines() if line.endswith(" commit"))
    if not present:
        return {}
    how = ("--no-walk=unsorted", "--no-commit-header", "--format=%H %T %ct %P", "--stdin")
    lines = (await git.ours(hub, "rev-list", *how, stdin=present.encode())).text.splitlines()
    parts = (line.split() for line in lines)
    return {name: Commit(tree, tuple(parents), float(at)) for name, tree, at, *parents in parts}


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch of the user's, as far as landings are concerned."""

    merges: frozenset[str]
    """Every merge commit in its history. A landing is one."""
    log: frozenset[str] = frozenset()
    """Where it has been, as far as it remembers."""
    since: float = 0.0
    """How far back it remembers."""

    def knows(self, landing: Landing) -> Whereabouts:
        if landing.after in self.merges:
            return Whereabouts.THERE
        if landing.after in self.log:
            return Whereabouts.REWRITTEN
        forgot = not self.log or self.since > landing.landed_at
        return Whereabouts.UNKNOWN if forgot else Whereabouts.NEVER


class Proofs:
    """Proves landings on the hub and the user's repository."""

    def __init__(self, git: GitProgram, places: Places) -> None:
        self._git = git
        self._places = places

    async def of(self, project: Project, landed: Sequence[Change]) -> list[Proof]:
        """The proof of each change; what has no receipt has none."""
        hub = self._places.hub(project)
        landings = [each.landing for each in landed if each.landing]
        known = await commits(self._git, hub, (each.after for each in landings)) if there(hub) else {}
        branches = {each: await self._branch(project, each) for each in {landing.main for landing in landings}}
        return [await self._proof(hub, change, known, branches) for change in landed]

    async def _proof(
        self, hub: Path, change: Change, known: dict[str, Commit], branches: dict[str, Branch | None]
    ) -> Proof:
        landing = change.landing
        if landing is None:
            return Proof()
        branch = branches[landing.main]
        whereabouts = branch.knows(landing) if branch else Whereabouts.UNKNOWN
        commit = known.get(landing.after)
        if commit is None:
            return Proof(whereabouts=whereabouts)
        merged = await self._merged(hub, landing.before, change.head)
        return Proof(tree=commit.tree, parents=commit.parents, merged=merged, whereabouts=whereabouts)

    async def _merged(self, hub: Path, before: str, head: str) -> str:
        """The tree of merging two commits, whose objects go where they are forgotten."""
        if not (_NAME.fullmatch(before) and _NAME.fullmatch(head)):
            return ""
        with tempfile.TemporaryDirectory(prefix="windlass-proof-") as objects:
            lent = {"GIT_OBJECT_DIRECTORY": objects, "GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted(hub / "objects")}
            ran = await self._git.ours(hub, "merge-tree", "--write-tree", "-z", before, head, extra=lent, ok=ANY)
        return "" if ran.code else ran.out.partition(b"\0")[0].decode()

    async def _branch(self, project: Project, name: str) -> Branch | None:
        """The user's branch; None if it, or the whole repository, is not there."""
        ref = f"refs/heads/{name}"
        try:
            merges = await self._git.theirs(project.path, "rev-list", "--min-parents=2", ref, "--", ok=ANY)
            if merges.code:
                return None
            how = ("-c", "log.showSignature=false", "log", "-g", "--date=unix", "--format=%H %gd", ref, "--")
            moves = _MOVE.findall((await self._git.theirs(project.path, *how, ok=ANY)).out)
        except Unavailable:
            return None
        log = frozenset(commit.decode() for commit, _ in moves)
        return Branch(frozenset(merges.text.split()), log, min((float(at) for _, at in moves), default=0.0))
