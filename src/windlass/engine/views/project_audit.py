"""The promise about projects: nothing goes on in one that was forgotten; those whose repository is gone are named."""

from __future__ import annotations

from collections.abc import Sequence

from windlass.core.invariants import Finding, counted, finding, judge_forgotten
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading


class ProjectAudit:
    """Looks at every project, the forgotten ones, too."""

    def __init__(self, ports: Ports) -> None:
        self.store = ports.store
        self.git = ports.git

    async def findings(self) -> Sequence[Finding]:
        projects = await self.store.read(lambda store: store.projects())
        gone = [(project, why) for project in projects if (why := await self.git.absence(project))]
        problems = await self.store.read(_going_on)
        return [
            finding("I15", counted(len(projects), "project"), problems, [f"{each.name}: {why}" for each, why in gone])
        ]


def _going_on(store: Reading) -> list[str]:
    forgotten = [project for project in store.projects(forgotten=True) if project.forgotten]
    found = (
        judge_forgotten(
            project,
            runs=[run.id for run in store.live_runs(project=project.id)],
            tasks=[task.id for task in store.unfinished_tasks(project=project.id)],
            changes=[change.id for change in store.changes(project=project.id)],
            agents=[agent.id for agent in store.agents(project=project.id)],
        )
        for project in forgotten
    )
    return [problem for problems in found for problem in problems]
