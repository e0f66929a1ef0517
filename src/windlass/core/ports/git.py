"""Git, as the engine uses it: one protocol for each topic, and `Git` with all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Candidate, Landing, LandingShape
from windlass.core.nouns.project import Project
from windlass.core.ports.archive import Archive
from windlass.core.radar.collisions import QuickLook
from windlass.core.runs.workdir import WorktreeState


class UserGit(Protocol):
    """The user's repository, and the hub that follows it."""

    async def locate(self, path: str, /) -> str:
        """Return the top folder of the repository at a path. Raises BadInput or NotFound if there is none."""
        ...

    async def inspect(self, top: str, /, *, main: str = "") -> str:
        """Return the name of the main branch. Raises BadInput or NotAllowed for a repository we can't work on."""
        ...

    async def absence(self, project: Project, /) -> str:
        """Why the repository can't be worked on: nothing is at its path, or no repository. Nothing if it is there."""
        ...

    async def main(self, project: Project, /) -> str:
        """Bring the hub up to date and return the tip of main; where the repository is gone, the last that is known."""
        ...

    async def files(self, project: Project, /) -> tuple[Sequence[str], bool]:
        """List the files of main, and say whether the list was cut."""
        ...

    async def branch_taken(self, project: Project, branch: str, /) -> bool:
        """Whether the hub or the user has a branch of that name."""
        ...

    async def take(self, project: Project, branch: str, /) -> tuple[str, str]:
        """Copy a branch of the user's into the hub. Returns its commit and the first line of that commit."""
        ...

    async def delete_hub(self, project: Project, /) -> None:
        """Delete the hub of a project, with all that is saved in it. Without a hub, nothing happens."""
        ...

    async def checkout(self, project: Project, /) -> str:
        """Commit the user's checkout as it is now into the hub, and return that commit.

        An unchanged checkout gives the same commit. Ignored files, nested repositories and large files are left out.
        """
        ...


class WorktreeGit(Protocol):
    """The worktrees of agents."""

    async def worktree(self, project: Project, agent: Agent, /) -> tuple[str, str]:
        """Make or verify an agent's worktree. Returns its path and the commit of main it starts from."""
        ...

    async def keep_spares(self, project: Project, room: int, /, *, like: Agent | None = None) -> None:
        """Keep checkouts of main ready for new worktrees, within so many bytes; 0: none.

        Only in a repository so large that it saves time, which an agent's new worktree shows.
        """
        ...

    async def renew(self, project: Project, agent: Agent, /, *, at: str = "") -> str:
        """Let an agent begin anew, in place, at main or at another commit that the hub has.

        Saves work that has not landed and returns the ref that brings it back; ignored files stay in the worktree.
        Raises NotAllowed where something can neither be saved nor stay.
        """
        ...

    async def branch(self, project: Project, agent: Agent, /) -> str:
        """Copy an agent's branch into the hub, if it has a worktree. Returns the commit that the hub has of it."""
        ...

    async def commit_there(self, project: Project, agent: Agent, /) -> str:
        """The commit that an agent's branch is at in its worktree, read without git; nothing if that can't be told."""
        ...

    async def hide(self, project: Project, agent: Agent, names: Sequence[str], /) -> None:
        """Let these paths of an agent's worktree never count as work."""
        ...

    async def record_extra_files(self, project: Project, agent: Agent, /) -> None:
        """Remember the files of a new worktree that are not the repository's: they do not count as work."""
        ...

    async def locks(self, project: Project, agent: Agent, /) -> Mapping[str, str]:
        """The lock files on an agent's branch, each with the id of its content."""
        ...

    def worktree_path(self, project: Project, agent: Agent, /) -> str: ...

    async def has_worktree(self, project: Project, agent: Agent, /) -> bool: ...

    def reach(self, project: Project, agent: Agent, /) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The folders outside its worktree that an agent's own git must read, and those it must write."""
        ...

    def environment(self, project: Project, agent: Agent, /) -> dict[str, str]:
        """Variables that keep an agent's own git away from the user's settings."""
        ...

    async def remove_worktree(self, project: Project, agent: Agent, /) -> str:
        """Snapshot a worktree and remove it. Returns the ref that brings it back.

        Raises NotAllowed where a snapshot can't hold all of it.
        """
        ...


class WorkGit(Protocol):
    """Agents' work: taken into the hub, compared and shown as a diff."""

    async def look(self, project: Project, agent: Agent, run: str, /) -> WorktreeState:
        """Take the branch and a snapshot of an agent's worktree into the hub; show the branch to the user."""
        ...

    async def quick_look(self, project: Project, agent: Agent, /) -> QuickLook:
        """Take an agent's work as it is now, to compare it: shown to nobody, kept only until the next quick look."""
        ...

    async def since(self, project: Project, base: str, /) -> QuickLook:
        """Describe main's changes since a commit as if they were an agent's work."""
        ...

    async def clash(self, project: Project, one: QuickLook, other: QuickLook, /) -> tuple[str, ...]:
        """The files in which two works can't be merged, or git's words about it; nothing if they can."""
        ...

    async def diff(self, project: Project, agent: Agent, /) -> str:
        """The changes in an agent's worktree since main, as they are now."""
        ...

    async def diff_between(self, project: Project, before: str, after: str, /) -> str:
        """The changes between two commits of the hub."""
        ...

    async def diff_of(self, project: Project, head: str, /) -> str:
        """The changes of a commit of the hub since it left main."""
        ...


class LandingGit(Protocol):
    """Candidates for main, and main's moves."""

    async def stage(
        self, project: Project, head: str, message: str, /, *, onto: str = "", shape: LandingShape = LandingShape.MERGE
    ) -> Candidate:
        """Bring a commit onto main, or onto a candidate, without a checkout. Raises Conflict, with it as text."""
        ...

    async def land(self, project: Project, /, *stack: Candidate) -> Landing:
        """Move main to the last candidate of a stack, each made on the one before, and return its receipt.

        A stack that has landed only gets its receipt. Raises Conflict if main has moved, NotAllowed with git's reason
        if the user's checkout is in the way.
        """
        ...

    async def texts(self, project: Project, commit: str, files: Sequence[str], /) -> Mapping[str, str | None]:
        """The texts of these files in a commit of the hub, None where they are too long together; those that it has
        not are left out."""
        ...

    async def links(self, project: Project, commit: str, /) -> Mapping[str, str]:
        """The links of a commit of the hub, each with where it leads."""
        ...

    async def mixed(self, project: Project, candidate: Candidate, other: str, files: Sequence[str], /) -> Candidate:
        """The candidate with these files as another commit has them, or without them where it has none. It can't
        land."""
        ...

    async def receipt(self, project: Project, candidate: Candidate, /) -> Landing:
        """The receipt of a candidate that main has, or had. Moves nothing."""
        ...

    async def landed(self, project: Project, commit: str, /) -> bool:
        """Whether main already contains this commit."""
        ...

    async def revert(self, project: Project, landing: Landing, branch: str, message: str, /) -> str:
        """Make the commit that takes a landing back, on a branch of the hub."""
        ...


class Git(UserGit, WorktreeGit, WorkGit, LandingGit, Protocol):
    """A project's repository, the hub beside it, and the worktrees of its agents."""

    @property
    def archive(self) -> Archive:
        """Saved work in the hub, and the proof of what landed."""
        ...
