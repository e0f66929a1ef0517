"""The hub: the daemon's own bare repository of a project."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput, NotFound, WindlassError
from windlass.core.nouns.project import Project
from windlass.git.files import NEW, beside, config_text, exclude_pattern, quoted, remove_tree, write_text
from windlass.git.paths import HubPaths
from windlass.git.program import FSYNC, GitProgram
from windlass.git.refs import HubRefs
from windlass.git.user_repository import UPLOAD, UserGitSettings, UserRepository

log = logging.getLogger("windlass")

RUNTIME = "/.windlass/input/\n/.windlass/output/\n/.windlass/chat.md\n/.windlass/process-status.json\n"
"""Files that we put into a worktree ourselves: they are not work."""

LOST = "refs/windlass/lost/"
"""Tips of main that a person has rewritten since; agents may have built on them."""

TAKEN = "refs/windlass/taken/"
"""Commits of a person's own branches that were put into the queue."""

ONLY_FETCHED = "windlass/only-fetched"
"""The file that says that a hub holds only objects that its refs led to when it was made."""

_SHA1 = 40
_NAME = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_FEW = 20
"""Commits that are looked at one by one before git is asked about a history."""

_REFUSAL = """#!/bin/sh
echo 'Nothing is pushed here: commit to your branch, and Windlass takes it to the gate.' >&2
exit 1
"""


class Locks:
    """One lock per name."""

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}

    def __call__(self, name: str) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())

    @property
    def any_held(self) -> bool:
        return any(lock.locked() for lock in self._locks.values())


class Hubs:
    """Makes hubs, and keeps their main up to date."""

    def __init__(
        self, git: GitProgram, places: HubPaths, user: UserRepository, watch: Callable[[Project], None]
    ) -> None:
        self._git = git
        self._places = places
        self._user = user
        self._watch = watch
        self._locks = Locks()
        self._opened: set[str] = set()
        self._refs = HubRefs()

    async def open(self, project: Project) -> Path:
        """The project's hub; made, if it does not exist."""
        hub = self._places.hub(project)
        self._watch(project)
        async with self._locks(project.id):
            if project.id not in self._opened:
                await self._git.require()
                if absent := self._user.absence(project):
                    return _only_known(project, hub, absent)
                if not hub.is_dir():
                    await self._make(project, hub)
                self.write_settings(project, await self._user.settings(project.path))
                await self._drop_unasked(project, hub)
                self._opened.add(project.id)
        return hub

    async def delete(self, project: Project) -> None:
        """Rename the hub first, so that what a crash leaves of it is swept, and never taken for a hub."""
        hub = self._places.hub(project)
        async with self._locks(project.id):
            self._opened.discard(project.id)
            if hub.is_dir():
                leaving = hub.with_name(f"{NEW}{hub.name}")
                await asyncio.to_thread(remove_tree, leaving)
                hub.rename(leaving)
                await asyncio.to_thread(remove_tree, leaving)

    async def main(self, project: Project) -> str:
        """Bring the hub's main to the user's, wherever that went, unless the user's is gone, and return its tip."""
        hub = await self.open(project)
        ref = f"refs/heads/{project.main}"
        if self._user.absence(project):
            return await self.ref(hub, ref)
        async with self._locks(project.id):
            tip, known = await self._user.tip(project), await self.ref(hub, ref)
            if tip != known:
                if known and not await self._user.contains(project, tip, known):
                    await self.put(hub, {f"{LOST}{known}": known})
                await self._fetch(hub, project.path, ref, ref)
            return await self.ref(hub, ref) if tip != known else tip

    async def follow(self, project: Project, before: str, after: str, refs: Mapping[str, str]) -> None:
        """The user's main was moved from one commit to another, both of the hub: follow it. More refs can be put."""
        hub, main = await self.open(project), f"refs/heads/{project.main}"
        async with self._locks(project.id):
            same = await self.ref(hub, main) == before and await self._user.tip(project) == after
            await self.put(hub, {**({main: after} if same else {}), **refs})
        if not same:
            await self.main(project)

    async def take(self, project: Project, branch: str) -> tuple[str, str]:
        """Copy a branch of the user's into the hub, under a ref that no agent sees. Returns its commit and subject."""
        hub = await self.open(project)
        branches = await self._user.branches(project.path)
        if branch == project.main:
            raise BadInput(f"{branch} is what changes land on.", hint="Name a branch that has something more.")
        if branch not in branches:
            hint = near_miss(branch, branches) or "Run `git branch` to see the branches."
            raise NotFound(f"{project.path} has no branch {branch[:200]!r}.", hint=hint)
        source = f"refs/heads/{branch}"
        kept = f"{TAKEN}{await self._user.ref(project, source)}"
        await self._fetch(hub, project.path, source, kept)
        said = await self._git.ours(hub, "log", "-1", "--format=%H%n%s", kept)
        commit, _, subject = said.text.partition("\n")
        return commit, subject

    async def head(self, project: Project) -> str:
        """Copy the commit that the user has checked out into the hub, and return it."""
        hub = await self.open(project)
        commit = await self._user.ref(project, "HEAD")
        await self._fetch(hub, project.path, "HEAD", f"{TAKEN}{commit}")
        return commit

    async def ref(self, hub: Path, ref: str) -> str:
        """The object of a ref of the hub, or nothing."""
        known = ref if _NAME.fullmatch(ref) else self._refs.find(hub, ref)
        if known is not None:
            return known
        return (await self._git.ours(hub, "rev-parse", "--verify", "-q", ref, ok=(0, 1))).text

    def below(self, hub: Path, folder: str) -> dict[str, str]:
        """The refs of the hub below a folder, with their objects."""
        return self._refs.below(hub, folder)

    async def put(self, hub: Path, refs: Mapping[str, str]) -> None:
        """Let refs of the hub be at these objects: all of them, or none."""
        lines = "".join(f"update {ref} {name}\n" for ref, name in refs.items())
        if lines:
            await self._git.ours(hub, "update-ref", "--stdin", stdin=lines.encode())

    async def contains(self, hub: Path, commit: str, ancestor: str) -> bool:
        """Whether a commit has another one in its history, or is that one."""
        return (await self._git.ours(hub, "merge-base", "--is-ancestor", ancestor, commit, ok=(0, 1))).code == 0

    async def merge_base(self, hub: Path, main: str, head: str) -> str:
        """Where a branch left main; main itself if they have nothing in common."""
        if await self.straight(hub, tip := await self.ref(hub, main), head) is not None:
            return tip
        found = await self._git.ours(hub, "merge-base", main, head, ok=(0, 1))
        return found.text or tip

    async def straight(self, hub: Path, before: str, head: str) -> list[str] | None:
        """The few commits, the newest first, that lead from one commit to another; None if it takes git to tell."""
        found: list[str] = []
        while before and head != before and len(found) < _FEW:
            commit = await self._git.commit(hub, head)
            if commit is None or len(commit.parents) != 1:
                return None
            found, head = [*found, head], commit.parents[0]
        return found if head == before else None

    async def commits(self, hub: Path, before: str, head: str) -> list[str]:
        """The commits of a head that another commit has not."""
        known = await self.straight(hub, before, head)
        return (await self._git.ours(hub, "rev-list", f"{before}..{head}")).text.split() if known is None else known

    async def pack(self, project: Project) -> None:
        """Put the refs and small objects of many landings together: each in a file of its own slows all that follows.

        Nothing is removed that is not in the pack, which is on the disk first. What begins meanwhile waits.
        """
        hub = await self.open(project)
        async with self._locks(project.id):
            await self._git.ours(hub, "pack-refs", "--all")
            safe = ("-c", f"core.fsync={FSYNC},pack-metadata")
            await self._git.ours(hub, *safe, "repack", "--geometric=2", "-d", "-n", "-q")

    def write_settings(self, project: Project, settings: UserGitSettings) -> None:
        """Write the hub's settings, if they have changed."""
        hub = self._places.hub(project)
        write_text(hub / "windlass.config", _settings(project, settings), only_if_new=True)
        write_text(hub / "info" / "exclude", self.excludes(project, settings), only_if_new=True)

    def excludes(self, project: Project, settings: UserGitSettings) -> str:
        """Patterns of files that are not work: ours, those that worktrees were given, and the user's own excludes."""
        return RUNTIME + "".join(f"{exclude_pattern(name)}\n" for name in self.hidden(project)) + settings.excludes

    def objects(self, project: Project) -> Path:
        """The folder of the hub's objects, which clones borrow."""
        return self._places.hub(project) / "objects"

    def hidden(self, project: Project) -> list[str]:
        """Paths that worktrees of this project were given."""
        file = self._places.hidden(project)
        return file.read_text("utf-8", "surrogateescape").splitlines() if file.is_file() else []

    def hide(self, project: Project, names: Iterable[str]) -> None:
        """Remember more such paths. None is ever forgotten: some worktree may still have it."""
        known = self.hidden(project)
        new = [name for name in dict.fromkeys(names) if name not in known and "\n" not in name]
        if new:
            write_text(self._places.hidden(project), "".join(f"{name}\n" for name in (*known, *new)))

    async def _make(self, project: Project, hub: Path) -> None:
        """Make it in a folder beside it, then rename: a hub is whole, or does not exist.

        It gets what main leads to and nothing else, because agents read all that it has: not a stash, not a private
        branch, not what is only staged. Nothing is borrowed, so that the user's own gc can't take it away.
        """
        tip = await self._user.tip(project)
        with beside(hub) as made:
            how = ("--bare", "--template=", f"--object-format={object_format(tip)}", "-q")
            # Its refs are files, whatever a newer git prefers: we read them ourselves.
            form = ("-c", "init.defaultRefFormat=files")
            await self._git.ours(None, *form, "init", *how, f"--initial-branch={project.main}", "--", str(made))
            await self._git.ours(made, "config", "include.path", "windlass.config")
            for folder in ("info", "hooks", "windlass/indexes"):
                (made / folder).mkdir(parents=True, exist_ok=True)
            write_text(made / "hooks" / "pre-receive", _REFUSAL, mode=0o755)
            write_text(made / "windlass.config", _settings(project, await self._user.settings(project.path)))
            main = f"refs/heads/{project.main}"
            await self._fetch(made, project.path, main, main)
            write_text(made / ONLY_FETCHED, "")
            made.rename(hub)

    async def _drop_unasked(self, project: Project, hub: Path) -> None:
        """A hub of an older Windlass began with all objects of the user's repository: drop those that no ref leads to.

        Not while there are worktrees, whose clones may have come to borrow one of them.
        """
        worktrees = self._places.worktrees(project)
        if (hub / ONLY_FETCHED).exists() or (
            worktrees.is_dir() and any(path.name[0] != "." for path in worktrees.iterdir())
        ):
            return
        self._places.checkout_index(project).unlink(missing_ok=True)
        try:
            await self._git.ours(hub, "-c", f"core.fsync={FSYNC},pack-metadata", "repack", "-a", "-d", "-n", "-q")
            await self._git.ours(hub, "prune", "--expire=now")
            write_text(hub / ONLY_FETCHED, "")
        except WindlassError as error:  # it is named by `doctor --check`, and tried again by the next daemon
            log.warning("the hub of %s keeps objects that no ref leads to: %s", project.name, error)

    async def _fetch(self, hub: Path, path: str, source: str, ref: str) -> None:
        how = ("--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--update-shallow", "-q", UPLOAD)
        await self._git.ours(hub, "fetch", *how, "--", path, f"+{source}:{ref}")


def _only_known(project: Project, hub: Path, absent: str) -> Path:
    """The hub of a project whose repository is gone: as it is, because a new one has nothing to be made from."""
    if not hub.is_dir():
        raise NotFound(
            f"{project.name} has no hub, and {absent}.",
            hint=f"Put it back, or run `windlass project forget {project.name}`.",
        )
    return hub


def _settings(project: Project, settings: UserGitSettings) -> str:
    """Agents see main and nothing else; nothing is ever pruned; lines end as the user wants."""
    lines = [
        ("gc", "auto", "0"),
        ("gc", "pruneExpire", "never"),
        ("core", "fsync", FSYNC),
        ("core", "fsyncMethod", "batch"),
        ("transfer", "hideRefs", "refs/"),
        ("transfer", "hideRefs", f"!refs/heads/{project.main}"),
        ("core", "autocrlf", settings.autocrlf),
        ("core", "eol", settings.eol),
    ]
    return config_text(lines)


def object_format(name: str) -> str:
    """How the objects of a repository are named in which one has this name."""
    return "sha1" if len(name) == _SHA1 else "sha256"


def own_objects(hub: Path, folder: Path | str, *lent: str) -> dict[str, str]:
    """Variables that let git write objects into a folder, and read those of the hub and of other folders."""
    known = (str(hub / "objects"), *filter(None, lent))
    return {"GIT_OBJECT_DIRECTORY": str(folder), "GIT_ALTERNATE_OBJECT_DIRECTORIES": ":".join(map(quoted, known))}
