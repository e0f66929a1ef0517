"""Looking into an agent's worktree without trusting anything in it."""

from __future__ import annotations

import asyncio
import os
import re
import stat
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from windlass.core.errors import Conflict, NotAllowed, NotFound
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.project import Project
from windlass.git.files import copy_or_clear, make_folder, shown, write_text
from windlass.git.hub import RUNTIME, Hubs
from windlass.git.paths import HubPaths, key
from windlass.git.program import ANY, GitProgram
from windlass.git.worktrees.intake import CommitIntake
from windlass.git.worktrees.untrusted import branch_there, commit_at, commits_kept, is_folder, read_inside

LARGEST_FILE = 50 << 20
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
_STUCK = re.compile(r"Unable to process path (.+)")
_IGNORED = re.compile(r"Ignoring path (.+)")
_CLOSED = re.compile(r"could not open directory '(.+?)/?': ")
_OURS = b".windlass/"
_MOST_STUCK = 50
_LARGEST_INDEX = 256 << 20


@dataclass(frozen=True, slots=True)
class Unsaved:
    """A file as it lies there that a snapshot can't hold."""

    name: str
    why: str
    tracked: bool

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


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

    async def see(self, project: Project, agent: Agent, *, apart: Mapping[str, str] | None = None) -> SeenWorktree:
        """Copy the branch into the hub, and write the files as a tree: into the hub, or where `apart` says."""
        worktree = self._places.worktree(project, agent)
        if not is_folder(worktree):
            raise NotFound(f"The worktree of {agent.id} is gone: {worktree}.", hint=f"Its branch is {agent.branch}.")
        hub = await self._hubs.open(project)
        main = await self._hubs.main(project)
        head, refused = await self._take_branch(hub, worktree, agent, main)
        index = self._places.index(project, agent)
        tree, unsaved = await self._write_tree(hub, worktree, index, head, apart or {})
        entries = (await self._git.ours(hub, "diff-tree", "-r", "-z", "--no-renames", main, head)).pairs
        return SeenWorktree(
            main=main,
            head=head,
            branch=branch_there(worktree),
            tree=tree,
            refused=refused,
            nested=tuple(shown(name) for facts, name in entries if facts.split()[1] == b"160000"),
            unsaved=tuple(unsaved),
        )

    async def branch(self, project: Project, agent: Agent) -> str:
        """Copy only the branch into the hub. Returns its commit."""
        hub = await self._hubs.open(project)
        main = await self._hubs.main(project)
        head, _ = await self._take_branch(hub, self._places.worktree(project, agent), agent, main)
        return head

    async def checkout(self, project: Project) -> str:
        """Commit the user's files as they are, on top of their HEAD; an unchanged checkout gives the last commit."""
        head = await self._hubs.head(project)
        hub = await self._hubs.open(project)
        index = self._places.checkout_index(project)
        make_folder(index.parent)
        tree, _ = await self._write_tree(hub, Path(project.path), index, head, {})
        said = await self._git.ours(hub, "log", "-1", "--format=%T %P", CHECKOUT, "--", ok=ANY)
        if said.text == f"{tree} {head}" and not said.code:
            return await self._hubs.ref(hub, CHECKOUT)
        return await self.keep(hub, SeenWorktree(main="", head=head, branch="", tree=tree), CHECKOUT)

    async def keep(self, hub: Path, sight: SeenWorktree, ref: str) -> str:
        """Put a seen worktree under a ref, as a commit."""
        commit = await self.commit(hub, sight, {})
        await self._git.ours(hub, "update-ref", ref, commit)
        return commit

    async def commit(self, hub: Path, sight: SeenWorktree, apart: Mapping[str, str]) -> str:
        """Commit a seen worktree on top of its branch; without a difference, the branch is that commit."""
        if await self._git.tree_of(hub, sight.head) == sight.tree:
            return sight.head
        how = ("commit-tree", sight.tree, "-p", sight.head, "-m", "The worktree as it was")
        return (await self._git.ours(hub, *how, extra={**_SELF, **apart})).text

    async def rescues(self, hub: Path, agent: Agent) -> int:
        """How often a worktree of this agent was saved before it was removed or renewed."""
        folder = f"refs/windlass/rescue/{key(agent)}"
        saved = await self._git.ours(hub, "for-each-ref", "--format=%(refname)", f"{folder}/*/tree")
        numbers = (line.removeprefix(f"{folder}/").split("/")[0] for line in saved.text.splitlines())
        return max(map(int, numbers), default=0)

    async def rescue(self, project: Project, agent: Agent, hub: Path, sight: SeenWorktree) -> str:
        """Save the files, and every commit that a name in the clone keeps. Returns the ref of the files."""
        ref = rescue_ref(agent, await self.rescues(hub, agent) + 1)
        worktree = self._places.worktree(project, agent)
        kept = commits_kept(worktree)
        try:
            await self._intake.bring(hub, worktree, dict.fromkeys(kept.values()))
        except Conflict as error:
            raise NotAllowed(f"The worktree of {agent.id} is kept: {error}", hint=f"Look at {worktree}.") from error
        stashes = {commit for name, commit in kept.items() if name.startswith("refs/stash")}
        whole = {stash: await self._whole_stash(hub, stash) for stash in stashes}
        kept = {name: whole.get(commit, commit) for name, commit in kept.items()}
        folder = ref.removesuffix("/tree")
        names = (re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-") for name in kept)
        numbered = zip(range(len(kept)), names, kept.values(), strict=True)
        lines = (f"update {folder}/{number}-{name} {commit}\n" for number, name, commit in numbered)
        await self._git.ours(hub, "update-ref", "--stdin", stdin="".join(lines).encode())
        await self.keep(hub, sight, ref)
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
            names = await self._ignored(project, agent)
            write_text(file, "".join(f"{name}\n" for name in names if "\n" not in name))

    async def ignored(self, project: Project, agent: Agent) -> list[str]:
        """What git ignores in a worktree, folders as a whole: no snapshot has it, and nobody gave it to the agent."""
        file = self._places.given(project, agent)
        given = file.read_text("utf-8").splitlines() if file.is_file() else []
        known = {line.strip("/") for line in (*RUNTIME.splitlines(), *self._hubs.hidden(project), *given)}
        found = await self._ignored(project, agent)
        return [f"{name}: ignored by git" for name in found if name.strip("/") not in known]

    async def _ignored(self, project: Project, agent: Agent) -> list[str]:
        hub = await self._hubs.open(project)
        worktree = self._places.worktree(project, agent)
        extra = {"GIT_WORK_TREE": str(worktree), "GIT_INDEX_FILE": str(self._places.index(project, agent))}
        asked = ("ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory")
        found = (await self._git.ours(hub, *asked, cwd=worktree, extra=extra)).names
        if _OURS in found:  # the whole folder is ignored, and part of it is ours
            found.remove(_OURS)
            found += [_OURS + os.fsencode(entry.name) for entry in os.scandir(worktree / os.fsdecode(_OURS))]
        return [shown(name) for name in found]

    async def differences(self, hub: Path, head: str, tree: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Files that were changed, and files that are new."""
        files = (await self._git.ours(hub, "diff-tree", "-r", "-z", "--no-renames", "--name-status", head, tree)).pairs
        changed = tuple(shown(name) for kind, name in files if kind != b"A")
        return changed, tuple(shown(name) for kind, name in files if kind == b"A")

    async def _take_branch(self, hub: Path, worktree: Path, agent: Agent, main: str) -> tuple[str, str]:
        """Copy the branch's commit into the hub; where that fails, return the last one known and why."""
        ref = f"refs/heads/{agent.branch}"
        known = await self._hubs.ref(hub, ref)
        there = commit_at(worktree, ref)
        if not there:
            return known or main, f"the branch {agent.branch} is gone from the worktree"
        try:
            if there != known:
                await self._intake.bring(hub, worktree, [there])
                if (await self._git.ours(hub, "cat-file", "-t", there)).text != "commit":
                    return known or main, f"{agent.branch} is at {there[:12]}, which is not a commit"
                await self._git.ours(hub, "update-ref", ref, there)
        except Conflict as error:
            reason = str(error).rstrip(".")
            return known or main, f"{agent.branch} is at commit {there[:12]}, which can't be taken in: {reason}"
        return there, ""

    async def _write_tree(
        self, hub: Path, worktree: Path, index: Path, head: str, apart: Mapping[str, str]
    ) -> tuple[str, list[Unsaved]]:
        """Bring our index to the branch, add what differs in the worktree, write it. Also what can't be added."""
        work = index.with_name(f"{index.name}.now")
        copy_or_clear(index, work)
        extra = {"GIT_WORK_TREE": str(worktree), "GIT_INDEX_FILE": str(work), **apart}
        if (await self._git.ours(hub, "read-tree", "--reset", head, extra=extra, ok=ANY)).code:
            work.unlink(missing_ok=True)
            await self._git.ours(hub, "read-tree", "--reset", head, extra=extra)
        unsaved = await self._add(hub, worktree, extra)
        tree = (await self._git.ours(hub, "write-tree", extra=extra)).text
        work.replace(index)
        return tree, unsaved

    async def _add(self, hub: Path, worktree: Path, extra: dict[str, str]) -> list[Unsaved]:
        changed, new = await asyncio.gather(
            self._git.ours(
                hub, "diff-files", "-z", "--name-status", "--ignore-submodules=all", cwd=worktree, extra=extra
            ),
            self._git.ours(hub, "ls-files", "-z", "-o", "--exclude-standard", cwd=worktree, extra=extra),
        )
        gone = [name for kind, name in changed.pairs if kind == b"D"]
        there = [name for kind, name in changed.pairs if kind != b"D"] + new.names
        there += await self._staged(hub, worktree, extra, {*there, *gone})
        fit, problems = await asyncio.to_thread(_sort, worktree, there)
        tracked = {name for _, name in changed.pairs}
        same = await self._as_committed(hub, worktree, extra, [name for name in problems if name in tracked])
        if gone:
            await self._update(hub, worktree, extra, "--force-remove", gone)
        problems |= await self._add_fit(hub, worktree, extra, fit + same)
        closed = [Unsaved(name, "an unreadable folder", tracked=False) for name in _CLOSED.findall(new.err)]
        found = [Unsaved(shown(name), why, name in tracked) for name, why in problems.items() if name not in same]
        return found + closed

    async def _as_committed(self, hub: Path, worktree: Path, extra: dict[str, str], names: list[bytes]) -> list[bytes]:
        """Of tracked files that are too large for a snapshot, those that are as they were committed."""
        if not names:
            return []
        listed = (await self._git.ours(hub, "ls-files", "-s", "-z", extra=extra)).names
        ids = {name: facts.split()[1] for facts, _, name in (entry.partition(b"\t") for entry in listed)}
        known = [name for name in names if name in ids and b"\n" not in name]
        asked = b"".join(ids[name] + b"\n" for name in known)
        sizes = await self._git.ours(hub, "cat-file", "--batch-check=%(objectsize)", stdin=asked, extra=extra)
        # Only a file of the same size is read: a larger one may have no end.
        there = [str(_size(worktree, name)) for name in known]
        alike = [name for name, size, now in zip(known, sizes.text.splitlines(), there, strict=True) if size == now]
        paths = b"".join(name + b"\n" for name in alike)
        hashed = await self._git.ours(
            hub, "hash-object", "--stdin-paths", cwd=worktree, stdin=paths, extra=extra, ok=ANY
        )
        return [name for name, found in zip(alike, hashed.out.split(), strict=False) if ids[name] == found]

    async def _staged(self, hub: Path, worktree: Path, extra: dict[str, str], seen: set[bytes]) -> list[bytes]:
        """Ignored files that the agent has added by force: only its own index names them, which is read as data."""
        asked = ("ls-files", "-z", "--cached")
        with tempfile.NamedTemporaryFile(dir=hub / "windlass") as copied:
            copied.write(read_inside(worktree, ".git/index", _LARGEST_INDEX) or b"")
            copied.flush()
            theirs, ours = await asyncio.gather(
                self._git.ours(hub, *asked, extra=extra | {"GIT_INDEX_FILE": copied.name}, ok=ANY),
                self._git.ours(hub, *asked, extra=extra),
            )
        known = {*ours.names, *seen}
        return [] if theirs.code else [name for name in theirs.names if name not in known]

    async def _add_fit(self, hub: Path, worktree: Path, extra: dict[str, str], fit: list[bytes]) -> dict[bytes, str]:
        """Add files. Returns those that git refuses: without one, the others are tried again."""
        refused: dict[bytes, str] = {}
        while fit and len(refused) < _MOST_STUCK:
            complaint = await self._update(hub, worktree, extra, "--add", fit)
            refused |= {name.encode(): "a name that git does not take" for name in _IGNORED.findall(complaint)}
            stuck = _STUCK.search(complaint)
            if not stuck:
                return refused
            named = [name for name in fit if shown(name) == stuck[1]] or [stuck[1].encode()]
            refused |= dict.fromkeys(named, "unreadable")
            fit = [name for name in fit if name not in refused]
        return refused

    async def _update(self, hub: Path, worktree: Path, extra: dict[str, str], how: str, names: Iterable[bytes]) -> str:
        args = ("update-index", how, "--replace", "--remove") if how == "--add" else ("update-index", how)
        stdin = b"".join(name + b"\0" for name in names)
        ran = await self._git.ours(hub, *args, "-z", "--stdin", cwd=worktree, stdin=stdin, extra=extra, ok=(0, 128))
        if ran.code and not _STUCK.search(ran.err):
            raise Conflict(f"The files of {worktree} could not be taken in: {ran.words}.")
        return ran.err


def _sort(worktree: Path, names: list[bytes]) -> tuple[list[bytes], dict[bytes, str]]:
    """Which files a snapshot can hold, and why not the others."""
    problems = {name: _problem(os.fsencode(worktree) + b"/" + name, name) for name in names}
    return [name for name, why in problems.items() if not why], {name: why for name, why in problems.items() if why}


def _size(worktree: Path, name: bytes) -> int:
    """The size of a plain file, or of nothing else."""
    try:
        facts = os.lstat(os.fsencode(worktree) + b"/" + name)
    except OSError:
        return -1
    return facts.st_size if stat.S_ISREG(facts.st_mode) else -1


def _problem(path: bytes, name: bytes) -> str:
    if name.endswith(b"/"):
        return "a nested repository"
    try:
        facts = os.lstat(path)
    except OSError:
        return ""
    if stat.S_ISDIR(facts.st_mode):
        return "a nested repository"
    if not stat.S_ISREG(facts.st_mode) and not stat.S_ISLNK(facts.st_mode):
        return "neither a file nor a link"
    if facts.st_size > LARGEST_FILE:
        return f"larger than {LARGEST_FILE >> 20} MB"
    return ""


def rescue_ref(agent: Agent, number: int) -> str:
    """Where the files are kept that an agent's worktree had."""
    return f"refs/windlass/rescue/{key(agent)}/{number}/tree"
