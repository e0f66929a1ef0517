"""Projects that can't be worked on, because their repository is gone or a person has forgotten them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from windlass.core.display import word
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.project import Absence, Project
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading, Writing
from windlass.engine.records.messages import tell_person


class Absences:
    """Asks the disk at each look: a repository that is back is not absent any more, without a word from anyone."""

    def __init__(self, ports: Ports) -> None:
        self.store = ports.store
        self.git = ports.git
        self.clock = ports.clock

    async def all(self) -> dict[str, Absence]:
        """The projects that can't be worked on, by id, with the reason and its age."""
        return await self.among(await self.store.read(lambda store: store.projects(forgotten=True)))

    async def of(self, agent: Agent) -> str:
        """Why nobody may start this agent now; nothing if someone may."""
        found = await self.store.read(lambda store: [store.find(Project, key) for key in agent.projects])
        return first_of(agent, await self.among(project for project in found if project))

    async def why(self, project: Project) -> str:
        """Why a project can't be worked on; nothing if it can."""
        return project.forgotten or await self.git.absence(project)

    async def notice(self, seen: Iterable[tuple[Project, float | None]]) -> None:
        """Record that a repository has gone or come back, once; tell the person if something waits for it."""
        for project, noticed in seen:
            why = await self.git.absence(project)
            if bool(why) != (noticed is not None):
                await self._record(project, why)

    async def _record(self, project: Project, why: str) -> None:
        now = self.clock.now()

        def step(store: Writing) -> None:
            store.set_position(_key(project), str(now) if why else "")
            store.record("project.gone" if why else "project.back", project.id, reason=why)
            if why and (store.unfinished_tasks(project=project.id) or store.changes(project=project.id)):
                tell_person(store, _news(project, why), channel="main", project=project.id, now=now)

        await self.store.write(step)

    async def among(self, projects: Iterable[Project]) -> dict[str, Absence]:
        """Those of these projects that can't be worked on, by id."""
        reasons = [(project, why) for project in projects if (why := await self.why(project))]
        if not reasons:
            return {}
        noticed = await self.store.read(lambda store: {each.id: noticed_at(store, each) for each, _ in reasons})
        return {each.id: Absence(why, each.forgotten_at or noticed[each.id]) for each, why in reasons}


def first_of(agent: Agent, absent: Mapping[str, Absence]) -> str:
    """The first reason why an agent can't work, in one of its projects."""
    return next((absent[key].reason for key in agent.projects if key in absent), "")


def _key(project: Project) -> str:
    return f"gone/{project.id}"


def noticed_at(store: Reading, project: Project) -> float | None:
    """When someone saw that the repository had gone; nothing if it is there, or nobody has looked."""
    kept = store.position(_key(project))
    return float(kept) if kept else None


def _news(project: Project, why: str) -> str:
    return (
        f"{project.name} waits: {why}. Nothing starts or lands there until it is back, which is seen by itself. "
        f"`windlass project forget {word(project.name)}` gives it up; what its agents have not landed is kept."
    )
