"""The fake git at the user's repository."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from fakes.git_state import GitState
from windlass.core.errors import BadInput, NotFound
from windlass.core.nouns.project import Project, gone

CHECKOUT = "refs/windlass/checkout"
"""The user's checkout when it was last looked at."""


class FakeUserGit(GitState):
    """The user's repository: where it is, its main, and what else it has."""

    async def locate(self, path: str, /) -> str:
        top = posixpath.normpath(path)
        if top not in self.repositories:
            raise BadInput(f"{path} is not in a git repository.", hint="Go to one, or make one: git init && git commit")
        return top

    async def inspect(self, top: str, /, *, main: str = "") -> str:
        branch = main or "main"
        if branch not in self.repositories[top].branches:
            raise BadInput(f"{top} has no branch {branch!r}.", hint="Name the branch to land on.")
        return branch

    async def absence(self, project: Project, /) -> str:
        return "" if project.path in self.repositories else gone(project.path, folder=False)

    async def main(self, project: Project, /) -> str:
        return self._main(project)

    async def delete_hub(self, project: Project, /) -> None:
        self.hubs.pop(project.id, None)

    async def files(self, project: Project, /) -> tuple[Sequence[str], bool]:
        return sorted(self.objects.files(self._main(project))), False

    async def branch_taken(self, project: Project, branch: str, /) -> bool:
        return f"refs/heads/{branch}" in self._hub(project).refs or branch in self._user(project).branches

    async def take(self, project: Project, branch: str, /) -> tuple[str, str]:
        commit = self._user(project).branches.get(branch)
        if branch == project.main:
            raise BadInput(f"{branch} is what changes land on.", hint="Name a branch that has something more.")
        if commit is None:
            raise NotFound(f"{project.path} has no branch {branch!r}.", hint="Run `git branch` to see them.")
        self._hub(project).refs[f"refs/windlass/taken/{commit}"] = commit
        return commit, self.objects.commits[commit].message.partition("\n")[0]

    async def checkout(self, project: Project, /) -> str:
        user, hub = self._user(project), self._hub(project)
        head = user.branches.get(user.checked_out) or self._main(project)
        known = hub.refs.get(CHECKOUT, "")
        if known and self.objects.commits[known].parents == (head,) and self.objects.files(known) == user.files:
            return known
        hub.refs[CHECKOUT] = self.objects.holding(user.files, head, "Your checkout as it was", self.now())
        return hub.refs[CHECKOUT]
