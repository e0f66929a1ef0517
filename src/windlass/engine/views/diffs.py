"""What an agent has changed: in its worktree now, or on main once it has landed."""

from __future__ import annotations

from windlass.core.nouns.change import Change, Landing
from windlass.core.nouns.project import Project
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading
from windlass.core.runs.workdir import Site
from windlass.engine.projects.projects import Projects
from windlass.engine.records.sites import site_of


class Diffs:
    """Shows changes as text."""

    def __init__(self, ports: Ports, projects: Projects) -> None:
        self.projects = projects
        self.store = ports.store
        self.git = ports.git

    async def of(self, name: str, *, within: str = "") -> str:
        """An agent's difference from main, or the one it has landed: in all of its projects, or within one."""
        site, landings = await self.store.read(lambda store: _about(store, name))
        shown = [project for project in site.projects if within in ("", project.id)]
        return "".join([await self._in(site, project, landings.get(project.id)) for project in shown])

    async def of_change(self, change: Change) -> str:
        """What a change would do to main, or has done."""
        project = await self.projects.get(change.project)
        if change.landing is not None:
            return await self.git.diff_between(project, change.landing.before, change.landing.after)
        return await self.git.diff_of(project, change.head)

    async def _in(self, site: Site, project: Project, landing: Landing | None) -> str:
        if landing is not None:
            return await self.git.diff_between(project, landing.before, landing.after)
        return await self.git.diff(project, site.agent)


def _about(store: Reading, name: str) -> tuple[Site, dict[str, Landing]]:
    """An agent's site, and the landings of its task, by project."""
    site, task = site_of(store, name), store.task_of(name)
    changes = store.changes_of_task(task.id) if task else []
    return site, {change.project: change.landing for change in changes if change.landing}
