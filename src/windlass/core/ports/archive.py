"""What git keeps for later: work saved under hidden refs, and the proof of what landed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Change
from windlass.core.nouns.project import Project


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """An agent's work as the hub keeps it: a worktree as it was."""

    ref: str
    commit: str
    agent: str
    label: str
    """1, 2 … for what was saved before a removal; the run's id for what was seen after a run."""
    made_at: float = 0.0
    """When its commit was made; what is in it was saved then or later."""
    landed: bool = False
    """Main has all of it."""
    sound: bool = True
    also: Mapping[str, str] = field(default_factory=dict)
    """Further refs, with their commits, that were saved with it and hold what it does not: a stash, another branch."""

    @property
    def id(self) -> str:
        """Short for its ref, as people type it."""
        return f"{self.agent}/{self.label}"

    @property
    def removed(self) -> bool:
        """Whether it was saved because its worktree was removed."""
        return self.label.isdigit()


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a saved worktree has that main had not when its branch left."""

    base: str
    """Where the branch left main."""
    commits: int
    """The agent's own; the one that holds what was uncommitted is not counted."""
    files: tuple[str, ...]
    new: bool
    """Main does not have all of these files as they are here."""


class Whereabouts(StrEnum):
    """Where a landed commit is, seen from the branch that it landed on."""

    THERE = "there"
    REWRITTEN = "rewritten"
    """The branch was there and is not any more: someone else moved it."""
    NEVER = "never"
    """The branch does not hold it, and its log, which goes back far enough, does not know it."""
    UNKNOWN = "unknown"
    """The repository, the branch or its log is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What git itself says about a landed change, asked anew."""

    tree: str = ""
    """The tree of the commit that main moved to; nothing if there is no such commit."""
    parents: tuple[str, ...] = ()
    stands: bool = True
    """Its first parents lead straight to where main was."""
    top: str = ""
    """The tree of the commit that it landed together with, where there is one."""
    merged: str = ""
    """The tree that merging the change gives again; nothing where that is a conflict."""
    whereabouts: Whereabouts = Whereabouts.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class HubState:
    """What was found wrong with a project's hub, and with the clones that borrow from it."""

    lost: tuple[str, ...] = ()
    """Objects that refs lead to and that are nowhere, each with its ref."""
    aside: tuple[str, ...] = ()
    """Refs that were taken out of the hub, because their own object is nowhere."""
    foreign: tuple[str, ...] = ()
    """What leads to another repository or is not ours: alternates, links, refs."""


class Archive(Protocol):
    """The hidden refs of a project's hub. A question changes no work, and makes no hub where there is none."""

    async def saved(self, project: Project, agent: Agent | None = None, /) -> list[Saved]:
        """Everything that is saved, or all of one agent's, in no order."""
        ...

    async def contents(self, project: Project, commit: str, /) -> Contents: ...

    async def difference(self, project: Project, commit: str, /, *, exact: bool) -> bytes:
        """What a saved worktree changed since its branch left main; `exact` can be applied, else it is to be read."""
        ...

    async def to_branch(self, project: Project, commit: str, branch: str, /) -> None:
        """Make a new branch of the user's. Raises Conflict where one has that name."""
        ...

    async def to_folder(self, project: Project, commit: str, folder: str, /) -> None:
        """Write the files into a new folder. Raises Conflict where something is there."""
        ...

    async def proofs(self, project: Project, landed: Sequence[Change], /) -> list[Proof]:
        """The proof of each of these landed changes."""
        ...

    async def examine(self, project: Project, /) -> HubState:
        """Search the whole hub and the clones. Damaged objects that are sound elsewhere are put back."""
        ...
