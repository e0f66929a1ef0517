"""Saved work in the hub, under hidden refs: find it, show it, bring it back. Nothing is ever removed here."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from windlass.core.address import Address
from windlass.core.errors import BadInput, Conflict, NotFound, Unavailable
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Change
from windlass.core.nouns.project import Project
from windlass.core.ports.archive import Contents, HubState, Proof, Saved
from windlass.git.files import beside, exists, folder_exists, shown
from windlass.git.hub import Hubs
from windlass.git.landing.proof import Commit, Proofs, commits
from windlass.git.paths import HubPaths, key
from windlass.git.program import ANY, GitProgram
from windlass.git.user_repository import RECEIVE, UserRepository
from windlass.git.worktrees.foreign import foreign_in_clone, foreign_in_hub
from windlass.git.worktrees.repair import HubRepair
from windlass.git.worktrees.snapshot import MAKER
from windlass.git.worktrees.untrusted import is_folder

LONGEST_DIFF = 10 << 20

_REMOVED = re.compile(r"refs/windlass/rescue/([^/]+)/(\d+)/(.+)")
_SEEN = re.compile(r"refs/windlass/snapshots/([^/]+)/([^/]+)")
_ALL = ("refs/windlass/rescue/", "refs/windlass/snapshots/")


class HubArchive:
    """The `Archive` port on the hubs."""

    def __init__(self, git: GitProgram, places: HubPaths, hubs: Hubs, user: UserRepository, repair: HubRepair) -> None:
        self._git = git
        self._repair = repair
        self._places = places
        self._hubs = hubs
        self._user = user
        self._proofs = Proofs(git, places)

    async def saved(self, project: Project, agent: Agent | None = None, /) -> list[Saved]:
        """List all saved work. A ref whose commit is missing is listed too, as unsound."""
        hub = self._places.hub(project)
        if not folder_exists(hub):
            return []
        where = [f"{top}{key(agent)}/" if agent else top for top in _ALL]
        said = await self._git.ours(hub, "for-each-ref", "--format=%(objectname) %(refname)", *where)
        pairs = [line.partition(" ")[::2] for line in said.text.splitlines()]
        refs = {ref: commit for commit, ref in pairs}
        known = await commits(self._git, hub, refs.values())
        new = await self._beyond(hub, [f"refs/heads/{project.main}"], known)
        return [await self._described(hub, refs, names, known, new) for names in _together(refs).values()]

    async def contents(self, project: Project, commit: str, /) -> Contents:
        """Count and list what a saved worktree has that main had not."""
        hub, main = self._hub(project), f"refs/heads/{project.main}"
        base = await self._hubs.merge_base(hub, main, commit)
        files, lacking = [await self._differing(hub, before, commit) for before in (base, main)]
        asked = ("rev-list", "--no-commit-header", "--format=%ce", f"{main}..{commit}")
        makers = (await self._git.ours(hub, *asked)).text.splitlines()
        own = sum(1 for maker in makers if maker != MAKER)
        new = not lacking.isdisjoint(files)
        return Contents(base=base, commits=own, files=tuple(sorted(shown(file) for file in files)), new=new)

    async def difference(self, project: Project, commit: str, /, *, exact: bool) -> bytes:
        """The changes of a saved worktree since its branch left main; unless `exact`, a very long diff is cut."""
        hub = self._hub(project)
        base = await self._hubs.merge_base(hub, f"refs/heads/{project.main}", commit)
        how = ("--no-ext-diff", "--no-textconv", "--no-color", *(("--binary", "--full-index") if exact else ()))
        said = await self._git.ours(hub, "diff", *how, base, commit, limit=LONGEST_DIFF, cut=True)
        if said.cut and exact:
            raise Unavailable(
                f"The difference is longer than {LONGEST_DIFF >> 20} MB.",
                hint="Bring the files themselves back: `windlass rescue restore` with --to.",
            )
        return said.out + ("\n… (cut)\n".encode() if said.cut else b"")

    async def to_branch(self, project: Project, commit: str, branch: str, /) -> None:
        """Make a branch of the user's that nobody has; the lease holds even if one is made meanwhile."""
        hub, ref = self._hub(project), f"refs/heads/{branch}"
        known_form = await self._git.ours(hub, "check-ref-format", "--branch", branch, ok=ANY)
        if known_form.code or branch.startswith(("@", "refs/")):
            raise BadInput(f"{branch[:80]!r} is not the name of a branch.", hint="A good one is like rescue/mine.")
        if known := await self._user.ref(project, ref):
            same = "and is at this very commit" if known == commit else "and is elsewhere"
            raise Conflict(
                f"{project.path} has a branch {branch} already, {same}.",
                hint=f"Look at it with `git log {branch}`, or choose another name with --branch NAME.",
            )
        how = ("-q", "--no-verify", f"--force-with-lease={ref}:", RECEIVE)
        pushed = await self._git.ours(hub, "push", *how, "--", project.path, f"{commit}:{ref}", ok=ANY)
        if pushed.code:
            raise Conflict(
                f"The branch {branch} could not be made: {pushed.words}", hint="Choose another name with --branch NAME."
            )

    async def to_folder(self, project: Project, commit: str, folder: str, /) -> None:
        """Write the files into a folder beside its place, then rename it: it is whole, or does not exist."""
        hub, path = self._hub(project), Path(folder)
        _require_free(path)
        with beside(path) as made:
            made.mkdir()
            extra = {"GIT_WORK_TREE": str(made), "GIT_INDEX_FILE": str(made.with_name("index"))}
            await self._git.ours(hub, "read-tree", "--reset", "-u", commit, cwd=made, extra=extra)
            made.rename(path)

    async def proofs(self, project: Project, landed: Sequence[Change], /) -> list[Proof]:
        return await self._proofs.of(project, landed)

    async def examine(self, project: Project, /) -> HubState:
        hub, clones = self._places.hub(project), self._places.worktrees(project)
        if not folder_exists(hub):
            return HubState()
        lost = await self._repair.examine(project)
        refs = (await self._git.ours(hub, "for-each-ref", "--format=%(refname)")).text.splitlines()
        foreign = await asyncio.to_thread(_foreign, hub, refs, clones)
        return HubState(lost=tuple(lost), aside=tuple(self._repair.set_aside(project)), foreign=tuple(foreign))

    async def _differing(self, hub: Path, before: str, after: str) -> set[bytes]:
        return set(
            (await self._git.ours(hub, "diff-tree", "-r", "-z", "--no-renames", "--name-only", before, after)).names
        )

    def _hub(self, project: Project) -> Path:
        hub = self._places.hub(project)
        if not folder_exists(hub):
            raise NotFound(f"The hub of {project.name} is gone: {hub}.", hint="Put it back from a copy.")
        return hub

    async def _beyond(self, hub: Path, known: Sequence[str], names: Iterable[str]) -> set[str]:
        """The commits behind these names that none of the known ones has in its history."""
        ends = [name for name in known if await self._hubs.ref(hub, name)]
        asked = "".join(f"{name}\n" for name in (*names, *(f"^{end}" for end in ends))).encode()
        return set((await self._git.ours(hub, "rev-list", "--stdin", stdin=asked)).text.split()) if asked else set()

    async def _described(
        self, hub: Path, refs: Mapping[str, str], names: Sequence[str], known: Mapping[str, Commit], new: set[str]
    ) -> Saved:
        """One saved worktree: the ref that holds its files, and those beside it that hold more."""
        ref = next((name for name in names if name.endswith("/tree")), names[0])
        commit, (agent, label) = refs[ref], _whose(ref)
        others = {refs[name]: name for name in reversed(names) if refs[name] in new and refs[name] != commit}
        if others and commit in known:
            beyond = await self._beyond(hub, [commit], others)
            others = {other: name for other, name in others.items() if other in beyond}
        return Saved(
            ref=ref,
            commit=commit,
            agent=agent,
            label=label,
            made_at=known[commit].made_at if commit in known else 0.0,
            landed=commit in known and commit not in new and not others,
            sound=all(refs[name] in known for name in names),
            also=dict(sorted((name, other) for other, name in others.items())),
        )


def _foreign(hub: Path, refs: Sequence[str], clones: Path) -> list[str]:
    # A link where a worktree was is none of ours: nothing is read there, and its agent's work counts as lost.
    found = sorted(path for path in clones.iterdir() if path.name[0] != ".") if clones.is_dir() else []
    worktrees = [path for path in found if is_folder(path)]
    in_clones = (problem for worktree in worktrees for problem in foreign_in_clone(worktree, hub))
    return [*foreign_in_hub(hub, refs), *in_clones]


def _require_free(path: Path) -> None:
    """Refuse a path that exists, or that no folder can have."""
    try:
        if exists(path):
            raise Conflict(f"{path} exists already.", hint="Name a new folder.")
        path.parent.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound(f"There is no folder {path.parent}.", hint="Make it first.") from error
    except OSError as error:
        raise BadInput(f"{path} cannot be a folder: {error.strerror}.") from error


def _together(refs: Iterable[str]) -> dict[tuple[str, str], list[str]]:
    """Refs by whose worktree they saved, and when."""
    groups: dict[tuple[str, str], list[str]] = {}
    for ref in refs:
        if _REMOVED.fullmatch(ref) or _SEEN.fullmatch(ref):
            groups.setdefault(_whose(ref), []).append(ref)
    return groups


def _whose(ref: str) -> tuple[str, str]:
    """The agent's address, and the number or run that a ref was saved under."""
    found = _REMOVED.fullmatch(ref) or _SEEN.fullmatch(ref)
    whose, label = (found[1], found[2]) if found else ("", "")
    name, _, instance = whose.partition(".")
    return str(Address(name, instance)), label
