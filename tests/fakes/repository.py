"""A person's repository, an agent's worktree and the hub, in memory: what people and agents do there with their git."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fakes.objects import Files, Objects

Edits = Mapping[str, str | None]
"""What becomes of files: their new text, or None for one that is removed."""


def edited(files: Files, edits: Edits) -> dict[str, str]:
    """Files after some of them were written or removed."""
    kept = {name: text for name, text in files.items() if edits.get(name, "") is not None}
    return kept | {name: text for name, text in edits.items() if text is not None}


@dataclass(slots=True)
class FakeRepository:
    """The user's: branches, where they have been, and the files of the one that is checked out."""

    objects: Objects
    now: Callable[[], float]
    branches: dict[str, str] = field(default_factory=dict)
    checked_out: str = "main"
    """The branch that is checked out, or nothing."""
    files: dict[str, str] = field(default_factory=dict)
    """What lies in the checkout, committed or not."""
    log: list[tuple[str, str, float]] = field(default_factory=list)
    """Every move of a branch: which, where to, and when."""

    def commit(self, edits: Edits, branch: str = "main") -> str:
        """Commit on a branch; where it is checked out, its files follow."""
        tip = self.branches.get(branch, "")
        files = edited(self.objects.files(tip) if tip else {}, edits)
        made = self.objects.commit(files, (tip,) if tip else (), "Work", self.now())
        self.move(branch, made)
        if branch == self.checked_out:
            self.files = edited(self.files, edits)
        return made

    def merge(self, branch: str, other: str) -> str:
        """Merge one branch into another by hand, if nothing is in the way. Returns the new tip."""
        tip, head = self.branches[branch], self.branches[other]
        merged = self.objects.merge(tip, head)
        if merged.conflicts:
            raise ValueError(f"{other} conflicts with {branch}")
        made = self.objects.commit(merged.files, (tip, head), f"Merge {other}", self.now())
        self.move(branch, made)
        if branch == self.checked_out:
            self.files = dict(merged.files)
        return made

    def reset(self, branch: str, commit: str) -> None:
        """Put a branch somewhere else, and its checkout with it."""
        self.move(branch, commit)
        if branch == self.checked_out:
            self.files = dict(self.objects.files(commit))

    def switch(self, branch: str) -> None:
        """Check out another branch, or none."""
        self.checked_out = branch
        if branch:
            self.files = dict(self.objects.files(self.branches[branch]))

    def write(self, edits: Edits) -> None:
        """Edit the checkout without committing."""
        self.files = edited(self.files, edits)

    def move(self, branch: str, commit: str) -> None:
        """Put a branch at a commit, and remember it."""
        self.branches[branch] = commit
        self.log.append((branch, commit, self.now()))


@dataclass(slots=True)
class FakeWorktree:
    """An agent's own clone: its files, its branches, and what a snapshot could not hold."""

    objects: Objects
    now: Callable[[], float]
    branches: dict[str, str]
    branch: str
    """The one that is checked out."""
    files: dict[str, str]
    nested: set[str] = field(default_factory=set)
    """Repositories inside this one, which no snapshot covers."""
    ignored: set[str] = field(default_factory=set)
    """Files that git ignores: no snapshot has them either."""
    damage: str = ""
    """Why the last commit can't be taken in."""

    def write(self, edits: Edits) -> None:
        """Edit files without committing."""
        self.files = edited(self.files, edits)

    def commit(self, edits: Edits | None = None, *, merging: str = "") -> str:
        """Commit all files as they are now, after these edits; with `merging`, as a merge with that commit."""
        self.write(edits or {})
        parents = tuple(filter(None, (self.branches[self.branch], merging)))
        self.branches[self.branch] = self.objects.commit(self.files, parents, "Work", self.now())
        return self.branches[self.branch]

    def switch(self, branch: str) -> None:
        """Make a branch here if there is none of that name, and check it out; the files stay as they are."""
        self.branches.setdefault(branch, self.branches[self.branch])
        self.branch = branch


@dataclass(slots=True)
class FakeHub:
    """The daemon's own repository of a project: nothing but refs, for objects are everyone's."""

    refs: dict[str, str] = field(default_factory=dict)
    landed_at: dict[str, float] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    """Paths of worktrees that never count as work."""
    given: dict[str, frozenset[str]] = field(default_factory=dict)
    """What git ignores in each agent's worktree that the agent did not put there."""
