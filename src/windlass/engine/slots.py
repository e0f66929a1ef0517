"""How many runs may live at once: in the home, and in each project."""

from __future__ import annotations

from collections import Counter

from windlass.core import policy
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.project import Project
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading

AT_ONCE = 2.0
"""Seconds: what is printed so soon after a question belongs to asking it."""
NONE_FREE = "no slot is free (limits.runs)"
"""Why one waits that could start."""


class Slots:
    """Asked before every start; the live runs in the store are the count."""

    def __init__(self, ports: Ports) -> None:
        self.store = ports.store
        self.settings = ports.settings
        self.processes = ports.processes

    async def free(self, agent: Agent) -> bool:
        """Whether this agent may start a run now."""
        return await self.store.read(lambda store: self.fits(store, agent))

    def fits(self, store: Reading, agent: Agent) -> bool:
        """The same, of one moment. Runs take up a slot that are about to start, or whose process lives.

        Where there is room for one more beside all that are not judged yet, nobody looks at their processes; nor, where
        there is room beside those, who leaves its slot to this agent."""
        found = store.find(Project, agent.project)
        own, home = self.settings.at(found.path if found else "").limits, self.settings.at("").limits
        counts = (store.live_by_project, lambda: self._alive(store), lambda: self._alive(store, lenders(store, agent)))
        return any(policy.may_start(agent.project, count(), home=home, own=own) for count in counts)

    def _alive(self, store: Reading, lent: frozenset[str] = frozenset()) -> Counter[str]:
        """How many runs have a process, or will have one, in each project; but for those of some agents."""
        busy = [run for run in store.live_runs() if run.identity is None or self.processes.alive(run.identity)]
        agents = (store.find(Agent, run.agent) for run in busy if run.agent not in lent)
        return Counter(agent.project for agent in agents if agent)


def lenders(store: Reading, agent: Agent) -> frozenset[str]:
    """Those who do nothing before they have an answer, if one of them has asked this agent.

    Else it could wait for a slot that is free only when it has answered. Who has printed something since it asked works
    on, and lends nothing."""
    asks = store.asking()
    if not any(agent.id in ask.to for ask in asks):
        return frozenset()
    runs = {each.agent: each.id for each in store.live_runs()}
    spoke = store.last_output(list(runs.values()))
    last = {name: spoke.get(run, 0.0) for name, run in runs.items()}
    return frozenset(ask.sender for ask in asks if last.get(ask.sender, 0.0) <= ask.sent_at + AT_ONCE)
