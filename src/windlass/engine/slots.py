"""The limit of live runs: in the home, and in each project."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

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
        return await self._fits(agent, frozenset()) or await self._fits(agent, await self.gone())

    async def gone_before(self, agent: Agent) -> frozenset[str]:
        """The runs to leave out when this agent is to start: none where it fits beside all of them."""
        return frozenset() if await self._fits(agent, frozenset()) else await self.gone()

    async def gone(self) -> frozenset[str]:
        """Runs that are not judged yet, and whose process has gone: for good, so a later transaction may rely on it."""
        live = await self.store.read(lambda store: store.live_runs())
        alive = await self.processes.alive(*(run.identity for run in live if run.identity))
        return frozenset(run.id for run in live if run.identity and run.identity not in alive)

    async def _fits(self, agent: Agent, gone: frozenset[str]) -> bool:
        return await self.store.read(lambda store: self.fits(store, agent, gone))

    def fits(self, store: Reading, agent: Agent, gone: frozenset[str]) -> bool:
        """Within a transaction: whether an agent may start, beside all runs but those that have gone.

        Only if they leave no slot, look for those who lend theirs to this agent."""
        found = store.find(Project, agent.project)
        own, home = self.settings.at(found.path if found else "").limits, self.settings.at("").limits
        if policy.may_start(agent.project, _busy(store, gone), home=home, own=own):
            return True
        return policy.may_start(agent.project, _busy(store, gone, lenders(store, agent)), home=home, own=own)


def _busy(store: Reading, gone: frozenset[str], lenders: frozenset[str] = frozenset()) -> Mapping[str, int]:
    """The number of taken slots in each project, without those of some runs and some agents."""
    if not gone and not lenders:
        return store.live_by_project()
    busy = (run.agent for run in store.live_runs() if run.id not in gone and run.agent not in lenders)
    agents = (store.find(Agent, name) for name in busy)
    return Counter(agent.project for agent in agents if agent)


def lenders(store: Reading, agent: Agent) -> frozenset[str]:
    """Those who do nothing before they have an answer, if one of them has asked this agent.

    Else it could wait for a slot that is free only when it has answered. Who has printed something since it asked works
    on, and lends nothing."""
    asks = store.asking()
    if not any(agent.id in ask.to for ask in asks):
        return frozenset()
    runs = {run.agent: run.id for run in store.live_runs()}
    spoke = store.last_output(list(runs.values()))
    last = {name: spoke.get(run, 0.0) for name, run in runs.items()}
    return frozenset(ask.sender for ask in asks if last.get(ask.sender, 0.0) <= ask.sent_at + AT_ONCE)
