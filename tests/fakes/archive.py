"""What the hub keeps for later, in memory: saved work, and the proof of what landed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from fakes.objects import Files, Objects
from fakes.repository import FakeHub, FakeRepository
from windlass.core.address import Address
from windlass.core.errors import Conflict
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Change, Landing
from windlass.core.nouns.project import Project
from windlass.core.ports.archive import Contents, HubState, Proof, Saved, Whereabouts

_SAVED = re.compile(r"refs/windlass/(?:rescue/([^/]+)/(\d+)/.+|snapshots/([^/]+)/([^/]+))")


class FakeArchive:
    """The `Archive` port on hubs in memory."""

    def __init__(
        self, objects: Objects, repositories: Mapping[str, FakeRepository], hubs: Mapping[str, FakeHub]
    ) -> None:
        self.folders: dict[str, Files] = {}
        """What was written into folders, by path."""
        self._objects = objects
        self._repositories = repositories
        self._hubs = hubs

    async def saved(self, project: Project, agent: Agent | None = None, /) -> list[Saved]:
        hub = self._hubs.get(project.id)
        if hub is None:
            return []
        groups: dict[tuple[str, str], list[str]] = {}
        for ref in hub.refs:
            if found := _SAVED.fullmatch(ref):
                groups.setdefault((found[1] or found[3], found[2] or found[4]), []).append(ref)
        every = [self._described(project, hub, *whose, refs) for whose, refs in groups.items()]
        return [each for each in every if agent is None or each.agent == agent.id]

    async def contents(self, project: Project, commit: str, /) -> Contents:
        main = self._main(project)
        base = self._objects.base(main, commit)
        files = self._objects.differing(base, commit)
        lacking = set(self._objects.differing(main, commit))
        own = [self._objects.commits[each].message for each in self._objects.beyond(main, commit)]
        count = sum(1 for each in own if each != "The worktree as it was")
        return Contents(base=base, commits=count, files=files, new=not lacking.isdisjoint(files))

    async def difference(self, project: Project, commit: str, /, *, exact: bool) -> bytes:
        del exact  # nothing is too long here
        return self._objects.difference(self._objects.base(self._main(project), commit), commit).encode()

    async def to_branch(self, project: Project, commit: str, branch: str, /) -> None:
        user = self._repositories[project.path]
        if branch in user.branches:
            raise Conflict(f"{project.path} has a branch {branch} already.", hint="Choose another name.")
        user.move(branch, commit)

    async def to_folder(self, project: Project, commit: str, folder: str, /) -> None:
        del project
        if folder in self.folders:
            raise Conflict(f"{folder} exists already.", hint="Name a new folder.")
        self.folders[folder] = self._objects.files(commit)

    async def proofs(self, project: Project, landed: Sequence[Change], /) -> list[Proof]:
        return [self._proof(project, change, change.landing) if change.landing else Proof() for change in landed]

    async def examine(self, project: Project, /) -> HubState:
        hub = self._hubs.get(project.id)
        gone = [(ref, commit) for ref, commit in hub.refs.items() if commit not in self._objects.commits] if hub else []
        return HubState(lost=tuple(f"{ref}: {commit} is missing" for ref, commit in gone))

    def _proof(self, project: Project, change: Change, landing: Landing) -> Proof:
        where = self._whereabouts(self._repositories.get(project.path), landing)
        commit = self._objects.commits.get(landing.after)
        if commit is None:
            return Proof(whereabouts=where)
        merged = ""
        if landing.before in self._objects.commits and change.head in self._objects.commits:
            again = self._objects.merge(landing.before, change.head)
            merged = "" if again.conflicts else self._objects.write_tree(again.files)
        return Proof(
            tree=commit.tree,
            parents=commit.parents,
            stands=commit.parents[:1] == (landing.before,),
            top=self._objects.commits[landing.top].tree if landing.top in self._objects.commits else "",
            merged=merged,
            whereabouts=where,
        )

    def _whereabouts(self, user: FakeRepository | None, landing: Landing) -> Whereabouts:
        tip = user.branches.get(landing.main) if user else None
        if user is None or tip is None:
            return Whereabouts.UNKNOWN
        if self._objects.contains(tip, landing.after):
            return Whereabouts.THERE
        moved = any((landing.main, landing.top or landing.after) == (branch, commit) for branch, commit, _ in user.log)
        return Whereabouts.REWRITTEN if moved else Whereabouts.NEVER

    def _main(self, project: Project) -> str:
        return self._hubs[project.id].refs[f"refs/heads/{project.main}"]

    def _described(self, project: Project, hub: FakeHub, whose: str, label: str, refs: Sequence[str]) -> Saved:
        ref = next((each for each in refs if each.endswith("/tree")), refs[0])
        commit = hub.refs[ref]
        known = self._objects.history(self._main(project))
        seen = known | self._objects.history(commit)
        also = {each: hub.refs[each] for each in refs if hub.refs[each] not in seen}
        name, _, instance = whose.partition(".")
        return Saved(
            ref=ref,
            commit=commit,
            agent=str(Address(name, instance)),
            label=label,
            made_at=self._objects.commits[commit].made_at,
            landed=commit in known and not also,
            also=also,
        )
