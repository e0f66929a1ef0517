"""Ask git again whether a change landed as its receipt says. Nothing is written, not even an object of the hub."""

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
from windlass.git.files import folder_exists
from windlass.git.hub import own_objects
from windlass.git.landing.shapes import straight_commits, straight_list
from windlass.git.paths import HubPaths
from windlass.git.program import ANY, GitProgram

_NAME = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MOVE = re.compile(rb"([0-9a-f]+) .*@\{(\d+)\}")


@dataclass(frozen=True, slots=True)
class Commit:
    """The tree, the parents and the time of a commit."""

    tree: str
    parents: tuple[str, ...]
    made_at: float


async def commits(git: GitProgram, hub: Path, names: Iterable[str]) -> dict[str, Commit]:
    """Read those of these commits that the hub has."""
    asked = "".join(f"{name}\n" for name in set(names) if _NAME.fullmatch(name)).encode()
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
    """A branch of the user's: the landings in its history, and its log."""

    landings: frozenset[str]
    """Every commit in its history that can be a landing: merges, and its first parents."""
    log: frozenset[str] = frozenset()
    """The commits that the branch was at, as far as its log goes back."""
    since: float = 0.0
    """How far back its log goes."""

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
        """The proof of each change; a change without a receipt has none."""
        hub = self._places.hub(project)
        landings = [change.landing for change in landed if change.landing]
        names = (name for landing in landings for name in (landing.after, landing.top))
        known = await commits(self._git, hub, names) if folder_exists(hub) else {}
        branches = {name: await self._branch(project, name) for name in {landing.main for landing in landings}}
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
        listed = await self._git.ours(hub, *straight_list(landing.before, landing.after), ok=ANY)
        return Proof(
            tree=commit.tree,
            parents=commit.parents,
            stands=commit.parents[:1] == (landing.before,) or straight_commits(listed.text, landing.before) > 0,
            top=top.tree if top else "",
            merged=await self._merged(hub, landing.before, change.head),
            whereabouts=whereabouts,
        )

    async def _merged(self, hub: Path, before: str, head: str) -> str:
        """Merge two commits and return the tree; its objects are thrown away."""
        if not (_NAME.fullmatch(before) and _NAME.fullmatch(head)):
            return ""
        with tempfile.TemporaryDirectory(prefix="windlass-proof-") as objects:
            extra = own_objects(hub, objects)
            ran = await self._git.ours(hub, "merge-tree", "--write-tree", "-z", before, head, extra=extra, ok=ANY)
        return "" if ran.code else ran.out.partition(b"\0")[0].decode()

    async def _branch(self, project: Project, name: str) -> Branch | None:
        """The user's branch; None if it, or the whole repository, is gone."""
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
