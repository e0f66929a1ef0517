"""The fake git lands changes on main."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fakes.git_state import LOST, GitState
from fakes.objects import Files, different
from windlass.core.errors import Conflict, NotAllowed, NotFound, TakenBack, Unfit
from windlass.core.nouns.change import Candidate, Landing, LandingShape
from windlass.core.nouns.project import Project


class FakeLandingGit(GitState):
    """Landing: candidates, the proof before main moves, receipts, and reverts."""

    async def stage(
        self, project: Project, head: str, message: str, /, *, onto: str = "", shape: LandingShape = LandingShape.MERGE
    ) -> Candidate:
        main = self._main(project)
        before = onto or main
        for each in (head, before):
            self._require(each)
        if self.objects.contains(before, head):
            tree = self.objects.tree(before)
            return Candidate(commit=before, tree=tree, before=before, commits=(), files=(), head=head)
        self._refuse_taken_back(project, main, head)
        merged = self.objects.merge(before, head)
        if merged.conflicts:
            raise Conflict(self._explain(merged.conflicts, before, head), hint="Merge origin/main into the branch.")
        self._refuse_unfit(different(self.objects.files(before), merged.files), merged.files)
        parents = (before, head) if shape is LandingShape.MERGE else (before,)
        commit = self.objects.commit(merged.files, parents, message, self.now())
        self._hub(project).refs[f"refs/windlass/candidates/{commit}"] = commit
        return Candidate(
            commit=commit,
            tree=self.objects.tree(commit),
            before=before,
            commits=self.objects.beyond(before, head),
            files=self.objects.differing(before, commit),
            head=head,
            shape=LandingShape.MERGE if shape is LandingShape.MERGE else LandingShape.SQUASH,
        )

    async def land(self, project: Project, /, *stack: Candidate) -> Landing:
        top = stack[-1]
        async with self._lock(project.id):
            self._require(top.commit)
            tip = self._main(project)
            if not self.objects.contains(tip, top.commit):
                self._prove(project, stack, tip)
                await self.pause("land.move")
                self._move(project, replace(top, before=tip))
                await self.pause("land.moved")
                self._main(project)
        return await self.receipt(project, top)

    async def texts(self, project: Project, commit: str, files: Sequence[str], /) -> Mapping[str, str]:
        del project
        found = self.objects.files(commit)
        return {file: found[file] for file in files if file in found}

    async def links(self, project: Project, commit: str, /) -> Mapping[str, str]:
        del project, commit
        return {}

    async def mixed(self, project: Project, candidate: Candidate, other: str, files: Sequence[str], /) -> Candidate:
        own = {name: text for name, text in self.objects.files(candidate.commit).items() if name not in files}
        made = {**own, **await self.texts(project, other, files)}
        commit = self.objects.commit(made, (candidate.commit,), "Test with the judges of main", self.now())
        return replace(candidate, commit=commit, tree=self.objects.tree(commit))

    async def receipt(self, project: Project, candidate: Candidate, /) -> Landing:
        self._require(candidate.commit)
        return Landing(
            main=project.main,
            before=candidate.before,
            after=candidate.commit,
            tree=candidate.tree,
            commits=candidate.commits,
            files=self.objects.differing(candidate.before, candidate.tree),
            landed_at=self._hub(project).landed_at.setdefault(candidate.commit, self.now()),
            top=candidate.top,
            proof=candidate.proof,
        )

    async def landed(self, project: Project, commit: str, /) -> bool:
        main = self._main(project)
        return commit in self.objects.commits and self.objects.contains(main, commit)

    async def revert(self, project: Project, landing: Landing, branch: str, message: str, /) -> str:
        if landing.before == landing.after:
            raise NotAllowed("This landing changed nothing, so there is nothing to take back.")
        made = self.objects.commit(self.objects.files(landing.before), (landing.after,), message, self.now())
        self._hub(project).refs[f"refs/heads/{branch}"] = made
        return made

    def _refuse_taken_back(self, project: Project, main: str, head: str) -> None:
        """What a person took out of main does not come back in an agent's history."""
        lost = [commit for ref, commit in self._hub(project).refs.items() if ref.startswith(LOST)]
        gone = frozenset[str]().union(*map(self.objects.history, lost)) - self.objects.history(main)
        if back := [each for each in self.objects.beyond(main, head) if each in gone]:
            raise TakenBack("\n".join(f"{each} {self.objects.commits[each].message}" for each in back))

    def _refuse_unfit(self, names: Sequence[str], files: Files) -> None:
        """What Windlass refuses to work on does not get onto main."""
        for name in names:
            lfs = posixpath.basename(name) == ".gitattributes" and "filter=lfs" in files.get(name, "")
            if lfs or (name == ".gitmodules" and name in files):
                raise Unfit(f"{name} is for what Windlass does not handle yet", hint=f"Take that out of {name}.")

    def _require(self, commit: str) -> None:
        if commit not in self.objects.commits:
            raise NotFound(f"The hub has no commit {commit[:80]}.", hint="Run `windlass doctor`.")

    def _explain(self, names: tuple[str, ...], main: str, head: str) -> str:
        text = f"{len(names)} file{'s' * (len(names) != 1)} in conflict with main: {', '.join(names)}.\n"
        for name in names:
            ours, theirs = (self.objects.files(each).get(name, "").rstrip("\n") for each in (main, head))
            text += f"\n--- {name}\n<<<<<<< main\n{ours}\n=======\n{theirs}\n>>>>>>> this change\n"
        return text

    def _prove(self, project: Project, stack: Sequence[Candidate], tip: str) -> None:
        """All that must be true before main may move, whatever was computed before."""
        for each in stack:
            if tip != each.before:
                raise Conflict(f"{project.main} has moved to {tip[:12]} since the change was tested.")
            parents = self.objects.commits[each.commit].parents
            wanted = (tip, each.head) if each.shape is LandingShape.MERGE else (tip,)
            if parents != wanted:
                raise Conflict(f"{each.commit[:12]} was not made on {project.main} as it is.")
            again = self.objects.write_tree(self.objects.merge(tip, each.head).files)
            if not each.tree == again == self.objects.tree(each.commit):
                raise Conflict(f"{each.commit[:12]} does not hold the tree that was tested.")
            tip = each.commit

    def _move(self, project: Project, candidate: Candidate) -> None:
        """Compare and swap; where main is checked out, its files follow, and local ones are never overwritten."""
        user = self._user(project)
        if user.branches.get(project.main) != candidate.before:
            raise Conflict(f"{project.main} has moved since the change was tested.")
        if user.checked_out == project.main:
            before, after = self.objects.files(candidate.before), self.objects.files(candidate.commit)
            touched = different(before, after)
            if mine := [each for each in touched if user.files.get(each) != before.get(each)]:
                raise NotAllowed(
                    f"Your checkout {project.path} is in the way: local changes would be overwritten: {mine[0]}.",
                    hint="Commit, stash or move what is named there; then it lands.",
                )
            user.write({each: after.get(each) for each in touched})
        user.move(project.main, candidate.commit)
