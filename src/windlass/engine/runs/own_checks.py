"""Checks that an agent asks for before it is done. The daemon runs them, so a green one counts at the gate."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

from windlass.core.errors import BadInput, Conflict, NotAllowed
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Candidate, CheckResult
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Run
from windlass.core.ports import Ports
from windlass.core.ports.store import Writing
from windlass.core.settings.schema import Settings
from windlass.engine.checking import CheckRuns
from windlass.engine.projects.projects import Projects
from windlass.engine.records.lookup import get


class OwnChecks:
    """Tests what main would be with an agent's commits, a few at a time."""

    def __init__(self, ports: Ports, projects: Projects) -> None:
        self.ports = ports
        self.store = ports.store
        self.projects = projects
        self.checks = CheckRuns(ports)
        self._turns = asyncio.Semaphore(max(1, ports.processors // 2))

    async def check(self, key: str) -> tuple[CheckResult, str]:
        """Run the project's checks on the tree that main would have; the result, and what they printed."""
        run = await self.store.read(lambda store: get(store, Run, key))
        agent = await self.store.read(lambda store: get(store, Agent, run.agent))
        project = await self.projects.get(agent.project)
        settings = self.ports.settings.at(project.path)
        if not settings.checks.command:
            raise BadInput(f"{project.name} has no check command.", hint="Only a person can set one.")
        tree = await self.ports.git.look(project, agent, run.id)
        if tree.refused:
            raise Conflict(
                f"Your commits can't be checked: {tree.refused}.", hint="Make them anew without what is wrong."
            )
        head = tree.head
        candidate = await self.ports.git.stage(project, head, f"Try what {agent.id} has")
        if not candidate.commits:
            raise Conflict(f"{project.main} has all that you have committed.", hint="Commit your work, then check it.")
        judges = await self._judges(run, project, candidate, settings)
        async with self._turns:
            result, output = await self.checks.run(project, candidate, settings, judges, main=candidate.before)
        result = replace(result, head=head)
        await self.store.write(partial(_keep, key, result))
        return result, output

    async def _judges(self, run: Run, project: Project, candidate: Candidate, settings: Settings) -> tuple[str, ...]:
        """The gate's own guard: what decides how changes are tested is not executed before a person has looked."""
        change = await self.store.read(lambda store: store.change_of_task(run.task))
        if change is not None and change.allowed == candidate.head:
            return ()
        if file := await self.checks.guard(project, candidate, settings):
            raise NotAllowed(
                f"Your commits change {file.name}, which {file.why}, so a person looks at them before they are tested.",
                hint="Say done: the person is asked when the change comes to the gate.",
            )
        return await self.checks.judges(project, settings, [candidate])


def own_result(run: Run, head: str, change: str) -> tuple[CheckResult, ...]:
    """The result of the checks that the agent asked for on these very commits: a test of the change alone."""
    if run.checked is None or run.checked.head != head:
        return ()
    return (replace(run.checked, stack=(change,)),)


def _keep(key: str, result: CheckResult, store: Writing) -> None:
    run = store.find(Run, key)
    if run is not None and run.live:
        store.record("run.checked", key, replace(run, checked=result), passed=result.passed)
