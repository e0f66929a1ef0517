"""The user's repositories, registered when first used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath

from windlass.core.errors import BadInput, WindlassError
from windlass.core.nouns.project import Project
from windlass.core.ports import Ports
from windlass.core.ports.store import Writing
from windlass.engine.records.lookup import get


class Projects:
    """Finds the project that a folder belongs to."""

    def __init__(self, ports: Ports) -> None:
        self.store = ports.store
        self.git = ports.git
        self.settings = ports.settings
        self.clock = ports.clock
        self.uuid = ports.uuid

    async def at(self, path: str, *, main: str = "") -> Project:
        """The project of the repository at a path; a new one is registered."""
        top = await self.locate(path)
        wanted = self.settings.at(top).project
        known = await self.store.read(lambda store: store.project_at(top))
        branch = await self.git.inspect(top, main=main or wanted.main or (known.main if known else ""))
        name = wanted.name or PurePath(top).name
        if known:
            project = replace(known, name=name, main=branch)
        else:
            key = await self._identity(wanted.uuid)
            project = Project(id=key, name=name, path=top, main=branch, added_at=self.clock.now())
        return project if project == known else await self.store.write(lambda store: _register(store, project))

    async def used_at(self, path: str) -> Project:
        """The same, but a registered repository is not inspected: talking there needs no sound repository."""
        top = await self.locate(path)
        wanted = self.settings.at(top).project
        known = await self.store.read(lambda store: store.project_at(top))
        same = known and known.name == (wanted.name or PurePath(top).name) and wanted.main in ("", known.main)
        return known if known and same else await self.at(path)

    async def _identity(self, wanted: str) -> str:
        """The id in its settings file; a new id if another checkout has that one, because a clone copies the file."""
        other = await self.store.read(lambda store: store.find(Project, wanted)) if wanted else None
        taken = other is not None and not other.forgotten and await self._is_there(other)
        return self.uuid() if taken or not wanted else wanted

    async def _is_there(self, project: Project) -> bool:
        try:
            return await self.locate(project.path) == project.path
        except WindlassError:
            return False  # it was moved or removed

    async def others(self, project: Project) -> list[Project]:
        """The other repositories that a project's agents change; each is a project with its own checks."""
        paths = self.settings.at(project.path).project.repositories
        found = [await self.at(str(PurePath(project.path, path))) for path in paths]
        names = [PurePath(each.path).name for each in (project, *found)]
        twice = next((name for name in names if names.count(name) > 1), "")
        if twice:
            raise BadInput(
                f"Two repositories of {project.name} are called {twice}, so agents could not tell them apart.",
                hint="See the setting project.repositories.",
            )
        return found

    async def locate(self, path: str) -> str:
        """The top folder of the repository at a path."""
        return await self.git.locate(path)

    async def look(self, path: str) -> tuple[str, str]:
        """The top folder and main branch of the repository at a path; nothing is registered."""
        top = await self.locate(path)
        known = await self.store.read(lambda store: store.project_at(top))
        wanted = self.settings.at(top).project.main or (known.main if known else "")
        return top, await self.git.inspect(top, main=wanted)

    async def known_at(self, path: str) -> Project | None:
        """The project of a folder, if it was ever used."""
        top = await self.locate(path)
        return await self.store.read(lambda store: store.project_at(top))

    async def get(self, key: str) -> Project:
        """The project with that id. Raises NotFound."""
        return await self.store.read(lambda store: get(store, Project, key))


def _register(store: Writing, project: Project) -> Project:
    """Store a project. One with the same id was moved or renamed, or registered by another caller at the same time: it
    keeps all that belongs to it. One that was forgotten begins anew, with the work that its hub has kept."""
    other = store.project_at(project.path) or store.find(Project, project.id)
    if other and other.forgotten:
        project, other = replace(project, hub_deleted_at=other.hub_deleted_at), None
    kept = replace(other, name=project.name, path=project.path, main=project.main) if other else project
    if kept != other:
        store.record("project.changed" if other else "project.added", kept.id, kept)
    return kept
