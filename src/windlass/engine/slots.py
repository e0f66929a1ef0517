"""How many runs may live at once: in the home, and in each project."""

from __future__ import annotations

from collections import Counter

from windlass.core import policy
from windlass.core.agent import Agent
from windlass.core.ports import Ports
from windlass.core.project import Project
from windlass.core.store import Reading


class Slots:
    """Asked before every start; the live runs in the store are the count."""

    def __init__(self, ports: Ports) -> None:
        self.store = ports.store
        self.settings = ports.settings
        self.processes = ports.processes

    async def free(self, project: str) -> bool:
        """Whether one more run of this project may start now."""
        return await self.store.read(lambda store: self.fits(store, project))

    def fits(self, store: Reading, project: str) -> bool:
        """The same, of one moment. Runs take up a slot that are about to start, or whose process lives.

        Where there is room for one more beside all that are not judged yet, nobody looks at their processes."""
        found = store.find(Project, project)
        own, home = self.settings.at(found.path if found else "").limits, self.settings.at("").limits
        counts = (store.live_by_project, lambda: self._alive(store))
        return any(policy.may_start(project, count(), home=home, own=own) for count in counts)

    def _alive(self, store: Reading) -> Counter[str]:
        """How many runs have a process, or will have one, in each project."""
        busy = [run for run in store.live_runs() if run.identity is None or self.processes.alive(run.identity)]
        agents = (store.find(Agent, run.agent) for run in busy)
        return Counter(each.project for each in agents if each)
