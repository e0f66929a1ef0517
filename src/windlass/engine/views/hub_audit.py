"""The promises about hubs and clones: no object is lost, and none leads to another repository."""

from __future__ import annotations

from collections.abc import Sequence

from windlass.core.invariants import Finding, counted, finding
from windlass.core.ports import Ports


class HubAudit:
    """Searches every project's hub. It reads each object, so that it may take a while."""

    def __init__(self, ports: Ports) -> None:
        self.store = ports.store
        self.archive = ports.git.archive

    async def findings(self) -> Sequence[Finding]:
        projects = await self.store.read(lambda store: store.projects(forgotten=True))
        states = [await self.archive.examine(project) for project in projects]
        lost = [problem for state in states for problem in state.lost]
        aside = [f"{ref} was set aside: its object is gone" for state in states for ref in state.aside]
        foreign = [problem for state in states for problem in state.foreign]
        seen = counted(len(projects), "repository", "repositories")
        return [finding("I13", seen, lost, aside), finding("I14", seen, foreign)]
