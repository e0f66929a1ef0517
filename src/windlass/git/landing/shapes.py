"""The commits that a change becomes in main's history: a merge, one commit, or its own ones again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from windlass.core.nouns.change import Candidate, LandingShape
from windlass.git.program import ANY, GitProgram

_AUTHOR = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE")


@dataclass(frozen=True, slots=True)
class LandingCommits:
    """Makes the commits that bring a head onto the commit before, and end at one tree."""

    git: GitProgram
    hub: Path
    before: str
    head: str
    tree: str
    message: str
    person: Mapping[str, str]
    """The committer: the user's own name, as environment."""

    async def commit(self, shape: LandingShape) -> tuple[str, LandingShape]:
        """Make the commits. Returns the last one, and the shape that it got."""
        if shape is LandingShape.REBASE and (replayed := await self._replay()):
            return replayed, shape
        if shape is LandingShape.MERGE:
            return await self._make(self.tree, (self.before, self.head), self.message, {}), shape
        author = await self._author(self.head)
        return await self._make(self.tree, (self.before,), self.message, author), LandingShape.SQUASH

    async def _replay(self) -> str:
        """Make the change's commits again, on the commit before. Returns nothing where that leads to other files."""
        asked = ("rev-list", "--reverse", "--parents", f"{self.before}..{self.head}")
        lines = [line.split() for line in (await self.git.ours(self.hub, *asked)).text.splitlines()]
        if any(len(line) != 2 for line in lines):
            return ""  # a merge, or a root: its part in the files can't be replayed
        tip = self.before
        for commit, parent in lines:
            tree = await self._pick(tip, commit, parent)
            if not tree:
                return ""
            words = (await self.git.ours(self.hub, "log", "-1", "--format=%B", commit)).text
            tip = await self._make(tree, (tip,), words, await self._author(commit))
        return tip if lines and await self.git.tree_of(self.hub, tip) == self.tree else ""

    async def _pick(self, tip: str, commit: str, parent: str) -> str:
        """Apply one commit's difference to another commit. Returns the tree, or nothing where they conflict.

        Both sides get a base of their own, because the oldest git we support can't be told which base to take.
        """
        trees = [await self.git.tree_of(self.hub, name) for name in (parent, tip, commit)]
        base = await self._make(trees[0], (), "base", {})
        ours, theirs = [await self._make(tree, (base,), "side", {}) for tree in trees[1:]]
        ran = await self.git.ours(self.hub, "merge-tree", "--write-tree", "-z", ours, theirs, ok=ANY)
        return "" if ran.code else ran.out.partition(b"\0")[0].decode()

    async def _author(self, commit: str) -> dict[str, str]:
        said = (await self.git.ours(self.hub, "log", "-1", "--format=%an%n%ae%n@%ad", "--date=raw", commit)).text
        return dict(zip(_AUTHOR, said.split("\n"), strict=True))

    async def _make(self, tree: str, parents: tuple[str, ...], message: str, author: Mapping[str, str]) -> str:
        words = message.replace("\0", "").encode("utf-8", "replace") or b"Land a change"
        on = [part for parent in parents for part in ("-p", parent)]
        who = {**self.person, **author}
        return (await self.git.ours(self.hub, "commit-tree", tree, *on, "-F", "-", stdin=words, extra=who)).text


async def stands_on(git: GitProgram, hub: Path, candidate: Candidate, below: str) -> bool:
    """Whether a candidate's commits begin at the commit below, and have the shape that was asked for."""
    if candidate.shape is LandingShape.MERGE:
        parents = await git.parents_of(hub, candidate.commit)
        return len(parents) == 2 and parents[0] == below and candidate.head in ("", parents[1])
    listed = await git.ours(hub, *straight_list(below, candidate.commit))
    count = straight_commits(listed.text, below)
    return count == 1 or (count > 1 and candidate.shape is LandingShape.REBASE)


def straight_list(before: str, after: str) -> tuple[str, ...]:
    """The git command that lists the commits, with their parents, that lead from one commit to another."""
    return ("rev-list", "--first-parent", "--parents", after, f"^{before}")


def straight_commits(listed: str, before: str) -> int:
    """Count the commits with one parent that lead straight from a commit on; 0 if others are between."""
    lines = [line.split() for line in listed.splitlines()]
    straight = bool(lines) and all(len(line) == 2 for line in lines) and lines[-1][1] == before
    return len(lines) if straight else 0
