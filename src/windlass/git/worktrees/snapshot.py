"""Looking into an agent's worktree without trusting anything in it."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from windlass.core.errors import Conflict, NotAllowed, NotFound
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.project import Project
from windlass.git.files import make_folder, shown, write_text
from windlass.git.hub import RUNTIME, Hubs
from windlass.git.paths import HubPaths, key
from windlass.git.program import ANY, GitProgram
from windlass.git.worktrees.intake import CommitIntake
from windlass.git.worktrees.untrusted import (
    LARGEST_INDEX,
    branch_there,
    commit_at,
    commits_kept,
    is_folder,
    read_inside,
)
from windlass.git.worktrees.written_tree import Unsaved, WorktreeFiles

MAKER = "snapshot@windlass.invalid"
"""The committer of work that an agent had not committed itself."""
_SELF = {
    "GIT_AUTHOR_NAME": "Windlass",
    "GIT_AUTHOR_EMAIL": MAKER,
    "GIT_COMMITTER_NAME": "Windlass",
    "GIT_COMMITTER_EMAIL": MAKER,
}
CHECKOUT = "refs/windlass/checkout"
"""The user's checkout at the last look."""
_OURS = b".windlass/"
_ASK_IGNORED = ("ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory")


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenWorktree:
    """A worktree as it was at a look."""

    main: str
    head: str
    branch: str
    tree: str
    refused: str = ""
    """Why the head is not the commit that the branch is at there: that one can't be taken in."""
    nested: tuple[str, ...] = ()
    """Nested repositories that were committed: only their names are in the commits."""
    unsaved: tuple[Unsaved, ...] = ()
    moves: Mapping[str, str] = field(default_factory=dict)
    """Refs that the hub does not have so yet."""

    @property
    def holes(self) -> tuple[str, ...]:
        """All that the hub does not have."""
        nested = (f"{name}: a nested repository" for name in self.nested)
        return (*filter(None, [self.refused]), *nested, *map(str, self.unsaved))


class Snapshots:
    """Takes an agent's branch and the files as they are into the hub.

    Git never runs on the agent's own `.git`: the branch is read as a file, commits are taken from the objects, and
    the files are added to an index of ours. So no setting, hook, filter or driver that is planted there executes.
    """

    def __init__(self, git: GitProgram, places: HubPaths, hubs: Hubs) -> None:
        self._git = git
        self._places = places
        self._hubs = hubs
        self._intake = CommitIntake(git)
        self._files = WorktreeFiles(git)
        self._seen: dict[Path, tuple[bytes, SeenWorktree]] = {}
        """The last look at a worktree, with the agent's own index as it was; only of what the hub has all of."""

    async def see(self, project: Project, agent: Agent, *, apart: Mapping[str, str] | None = None) -> SeenWorktree:
        """Copy the branch into the hub, and write the files as a tree: into the hub, or where `apart` says."""
        sight = await self.look(project, agent, apart=apart)
        await self._hubs.put(await self._hubs.open(project), sight.moves)
        return replace(sight, moves={})

    async def see_all(self, project: Project, agent: Agent) -> tuple[SeenWorktree, list[str]]:
        """The same, and all that no snapshot has. A worktree that is as it was at the last look isn't written again."""
        if sight := await self._unchanged(project, agent):
            return sight, []
        sight = await self.see(project, agent)
        return sight, [*sight.holes, *await self.ignored(project, agent)]

    async def _unchanged(self, project: Project, agent: Agent) -> SeenWorktree | None:
        """The last look at a worktree, if nothing has changed since, and nothing is there that a look leaves out."""
        worktree, ref = self._places.worktree(project, agent), f"refs/heads/{agent.branch}"
        index, sight = self._seen.get(worktree, (b"", None))
        if not sight or index != _agents_index(worktree) or sight.branch != branch_there(worktree):
            return None
        taken = await self._hubs.ref(await self._hubs.open(project), ref)
        if not sight.head == taken == commit_at(worktree, ref):
            return None
        asked = ("ls-files", "-z", "-m", "-d", "-o", "--directory", "--no-empty-directory")
        return None if await self._own(project, agent, asked) else sight

    def forget(self, project: Project, agent: Agent) -> None:
        """The last look at a worktree does not count any more."""
        self._seen.pop(self._places.worktree(project, agent), None)

    async def look(self, project: Project, agent: Agent, *, apart: Mapping[str, str] | None = None) -> SeenWorktree:
        """The same as `see`, but the refs of the hub are left to the caller, who may have more to put."""
        worktree = self._places.worktree(project, agent)
        if not is_folder(worktree):
            raise NotFound(f"The worktree of {agent.id} is gone: {worktree}.", hint=f"Its branch is {agent.branch}.")
        hub = await self._hubs.open(project)
        main = await self._hubs.main(project)
        self.forget(project, agent)
        head, moves, refused = await self._take_branch(hub, worktree, agent, main)
        index, theirs = self._places.index(project, agent), _agents_index(worktree)
        written = await self._files.write(hub, worktree, index, head, apart or {})
        sight = SeenWorktree(
            main=main,
            head=head,
            branch=branch_there(worktree),
            tree=written.tree,
            refused=refused,
            nested=tuple(map(shown, written.nested)),
            unsaved=tuple(written.unsaved),
            moves=moves,
        )
        if not apart and not sight.holes:
            self._seen[worktree] = theirs, replace(sight, moves={})
        return sight

    async def branch(self, project: Project, agent: Agent) -> str:
        """Copy only the branch into the hub. Returns its commit."""
        hub = await self._hubs.open(project)
        main = await self._hubs.main(project)
        head, moves, _ = await self._take_branch(hub, self._places.worktree(project, agent), agent, main)
        await self._hubs.put(hub, moves)
        return head

    async def checkout(self, project: Project) -> str:
        """Commit the user's files as they are, on top of their HEAD; an unchanged checkout gives the last commit."""
        head = await self._hubs.head(project)
        hub = await self._hubs.open(project)
        index = self._places.checkout_index(project)
        make_folder(index.parent)
        tree = (await self._files.write(hub, Path(project.path), index, head, {})).tree
        said = await self._git.ours(hub, "log", "-1", "--format=%T %P", CHECKOUT, "--", ok=ANY)
        if said.text == f"{tree} {head}" and not said.code:
            return await self._hubs.ref(hub, CHECKOUT)
        commit = await self.commit(hub, SeenWorktree(main="", head=head, branch="", tree=tree), {})
        await self._hubs.put(hub, {CHECKOUT: commit})
        return commit

    async def commit(self, hub: Path, sight: SeenWorktree, apart: Mapping[str, str]) -> str:
        """Commit a seen worktree on top of its branch; without a difference, the branch is that commit."""
        if await self._git.tree_of(hub, sight.head) == sight.tree:
            return sight.head
        how = ("commit-tree", sight.tree, "-p", sight.head, "-m", "The worktree as it was")
        return (await self._git.ours(hub, *how, extra={**_SELF, **apart})).text

    def rescues(self, hub: Path, agent: Agent) -> int:
        """How often a worktree of this agent was saved before it was removed or renewed."""
        folder = f"refs/windlass/rescue/{key(agent)}/"
        saved = (ref.removeprefix(folder).split("/") for ref in self._hubs.below(hub, folder))
        return max((int(number) for number, *rest in saved if rest == ["tree"]), default=0)

    async def rescue(self, project: Project, agent: Agent, hub: Path, sight: SeenWorktree) -> str:
        """Save the files, and every commit that a name in the clone keeps. Returns the ref of the files."""
        ref = rescue_ref(agent, self.rescues(hub, agent) + 1)
        worktree = self._places.worktree(project, agent)
        kept = commits_kept(worktree)
        try:
            if {*kept.values()} != {sight.head}:  # the head was taken in when it was seen
                await self._bring(hub, worktree, dict.fromkeys(kept.values()), sight.main, agent)
        except Conflict as error:
            raise NotAllowed(f"The worktree of {agent.id} is kept: {error}", hint=f"Look at {worktree}.") from error
        stashes = {commit for name, commit in kept.items() if name.startswith("refs/stash")}
        whole = {stash: await self._whole_stash(hub, stash) for stash in stashes}
        kept = {name: whole.get(commit, commit) for name, commit in kept.items()}
        folder = ref.removesuffix("/tree")
        names = (re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-") for name in kept)
        numbered = zip(range(len(kept)), names, kept.values(), strict=True)
        refs = {f"{folder}/{number}-{name}": commit for number, name, commit in numbered}
        await self._hubs.put(hub, {**refs, ref: await self.commit(hub, sight, {})})
        return ref

    async def _whole_stash(self, hub: Path, stash: str) -> str:
        """A stash with the untracked files in it: git keeps them in its third parent, where no diff shows them."""
        untracked = await self._hubs.ref(hub, f"{stash}^3")
        if not untracked:
            return stash
        files = (await self._git.ours(hub, "ls-tree", "-r", "-z", untracked)).out
        with tempfile.TemporaryDirectory(dir=hub / "windlass") as folder:
            extra = {"GIT_INDEX_FILE": f"{folder}/index"}
            await self._git.ours(hub, "read-tree", stash, extra=extra)
            await self._git.ours(hub, "update-index", "-z", "--index-info", stdin=files, extra=extra)
            tree = (await self._git.ours(hub, "write-tree", extra=extra)).text
        how = ("commit-tree", tree, "-p", stash, "-m", "The stash, with its untracked files")
        return (await self._git.ours(hub, *how, extra=_SELF)).text

    async def record_extra_files(self, project: Project, agent: Agent) -> None:
        """Remember what git ignores in a worktree that its agent has not begun in: none of it is the agent's work."""
        file = self._places.given(project, agent)
        if not file.is_file():
            make_folder(file.parent)
            names = await self._listed(project, agent, _ASK_IGNORED)
            write_text(file, "".join(f"{name}\n" for name in names if "\n" not in name))

    async def ignored(self, project: Project, agent: Agent) -> list[str]:
        """What git ignores in a worktree, folders as a whole: no snapshot has it, and nobody gave it to the agent."""
        return [f"{name}: ignored by git" for name in await self._own(project, agent, _ASK_IGNORED)]

    async def _own(self, project: Project, agent: Agent, asked: Sequence[str]) -> list[str]:
        """Of the files in a worktree that git is asked for, those that nobody gave to the agent."""
        file = self._places.given(project, agent)
        given = file.read_text("utf-8").splitlines() if file.is_file() else []
        known = {line.strip("/") for line in (*RUNTIME.splitlines(), *self._hubs.hidden(project), *given)}
        return [name for name in await self._listed(project, agent, asked) if name.strip("/") not in known]

    async def _listed(self, project: Project, agent: Agent, asked: Sequence[str]) -> list[str]:
        hub = await self._hubs.open(project)
        worktree = self._places.worktree(project, agent)
        extra = {"GIT_WORK_TREE": str(worktree), "GIT_INDEX_FILE": str(self._places.index(project, agent))}
        found = (await self._git.ours(hub, *asked, cwd=worktree, extra=extra)).names
        if _OURS in found:  # the whole folder is ignored, and part of it is ours
            found.remove(_OURS)
            found += [_OURS + os.fsencode(entry.name) for entry in os.scandir(worktree / os.fsdecode(_OURS))]
        return [shown(name) for name in found]

    async def differences(self, hub: Path, head: str, tree: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Files that were changed, and files that are new."""
        if await self._git.tree_of(hub, head) == tree:
            return (), ()
        files = (await self._git.ours(hub, "diff-tree", "-r", "-z", "--no-renames", "--name-status", head, tree)).pairs
        changed = tuple(shown(name) for kind, name in files if kind != b"A")
        return changed, tuple(shown(name) for kind, name in files if kind == b"A")

    async def _bring(self, hub: Path, worktree: Path, commits: Iterable[str], main: str, agent: Agent) -> None:
        """Take commits in that are beyond main, and beyond what the hub has of the agent's branch."""

        async def known() -> list[str]:
            refs = (main, f"refs/heads/{agent.branch}")
            return [commit for ref in refs if (commit := await self._hubs.ref(hub, ref))]

        await self._intake.bring(hub, worktree, commits, known)

    async def _take_branch(self, hub: Path, worktree: Path, agent: Agent, main: str) -> tuple[str, dict[str, str], str]:
        """Copy the branch's commit into the hub. Returns it and the refs to put; where it fails, the last and why."""
        ref = f"refs/heads/{agent.branch}"
        known = await self._hubs.ref(hub, ref)
        there = commit_at(worktree, ref)
        if not there:
            return known or main, {}, f"the branch {agent.branch} is gone from the worktree"
        if there == known:
            return there, {}, ""
        try:
            await self._bring(hub, worktree, [there], main, agent)
        except Conflict as error:
            reason = str(error).rstrip(".")
            return known or main, {}, f"{agent.branch} is at commit {there[:12]}, which can't be taken in: {reason}"
        if await self._git.kind(hub, there) != "commit":
            return known or main, {}, f"{agent.branch} is at {there[:12]}, which is not a commit"
        return there, {ref: there}, ""


def _agents_index(worktree: Path) -> bytes:
    """What tells one state of the agent's own index from another."""
    return hashlib.sha256(read_inside(worktree, ".git/index", LARGEST_INDEX) or b"").digest()


def rescue_ref(agent: Agent, number: int) -> str:
    """Where the files are kept that an agent's worktree had."""
    return f"refs/windlass/rescue/{key(agent)}/{number}/tree"
