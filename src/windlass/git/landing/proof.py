"""Asking git again for all that was true when a change landed. Nothing is written, not even an object of the hub."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from windlass.core.errors import Unavailable
from windlass.core.nouns.change import Change, Landing
from windlass.core.nouns.project import Project
from windlass.core.ports.archive import Proof, Whereabouts
from windlass.git.files import there
from windlass.git.hub import quoted
from windlass.git.paths import HubPaths
from windlass.git.program import ANY, GitProgram

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

    landings: frozenset[str]
    """Every commit in its history that can be a landing: merges, and what it went through itself."""
    log: frozenset[str] = frozenset()
    """Where it has been, as far as it remembers."""
    since: float = 0.0
    """How far back it remembers."""

    def knows(self, landing: Landing) -> Whereabouts:
        if landing.after in self.landings:
            return Whereabouts.THERE
        if (landing.top or landing.after) in self.log:
            return Whereabouts.REWRITTEN
        forgot = not self.log or self.since > landing.landed_at
        return Whereabouts.UNKNOWN if forgot else Whereabouts.NEVER


class Proofs:
    """Proves landings on the hub and the user's repository."""

    def __init__(self, git: GitProgram, places: HubPaths) -> None:
        self._git = git
        self._places = places

    async def of(self, project: Project, landed: Sequence[Change]) -> list[Proof]:
        """The proof of each change; what has no receipt has none."""
        hub = self._places.hub(project)
        landings = [each.landing for each in landed if each.landing]
        names = (name for each in landings for name in (each.after, each.top))
        known = await commits(self._git, hub, names) if there(hub) else {}
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
        top = known.get(landing.top)
        return Proof(
            tree=commit.tree,
            parents=commit.parents,
            stands=commit.parents[:1] == (landing.before,) or await self._replayed(hub, landing),
            top=top.tree if top else "",
            merged=await self._merged(hub, landing.before, change.head),
            whereabouts=whereabouts,
        )

    async def _replayed(self, hub: Path, landing: Landing) -> bool:
        """Whether single commits lead straight from where main was to a landing."""
        asked = ("rev-list", "--first-parent", "--parents", landing.after, f"^{landing.before}")
        ran = await self._git.ours(hub, *asked, ok=ANY)
        lines = [] if ran.code else [line.split() for line in ran.text.splitlines()]
        return bool(lines) and all(len(line) == 2 for line in lines) and lines[-1][1] == landing.before

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
            own = await self._git.theirs(project.path, "rev-list", "--first-parent", ref, "--", ok=ANY)
            if merges.code or own.code:
                return None
            how = ("-c", "log.showSignature=false", "log", "-g", "--date=unix", "--format=%H %gd", ref, "--")
            moves = _MOVE.findall((await self._git.theirs(project.path, *how, ok=ANY)).out)
        except Unavailable:
            return None
        log = frozenset(commit.decode() for commit, _ in moves)
        since = min((float(at) for _, at in moves), default=0.0)
        return Branch(frozenset((*merges.text.split(), *own.text.split())), log, since)
