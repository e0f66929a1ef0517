"""What there is to do: adding a task, with the agent that will do it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from windlass.core import names
from windlass.core.agent import Agent
from windlass.core.errors import BadInput, NotFound
from windlass.core.ports import Ports, Writing
from windlass.core.project import Project
from windlass.core.provider import Provider
from windlass.core.settings import WorkSettings
from windlass.core.task import Task
from windlass.engine.bell import Bell
from windlass.engine.projects import Projects

LONGEST_TITLE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a person wants done, as it was typed."""

    path: str
    title: str
    brief: str = ""
    provider: str = ""
    options: Mapping[str, str]


class Tasks:
    """Adds and finds tasks."""

    def __init__(self, ports: Ports, projects: Projects, bell: Bell) -> None:
        self.store = ports.store
        self.projects = projects
        self.git = ports.git
        self.providers = ports.providers
        self.settings = ports.settings
        self.clock = ports.clock
        self.bell = bell
        self.random = ports.random

    async def add(self, order: Order) -> tuple[Task, Agent]:
        """A task and a new agent for it, or a refusal before anything is created."""
        title = _check_title(order.title)
        project = await self.projects.at(order.path)
        self.settings.check(project.path)
        provider, options = self._choose(order, self.settings.at(project.path).work)
        await self.git.main(project)
        agent = Agent(name="", project=project.id, provider=provider.name, options=options, created_at=self.clock.now())
        while True:
            named = replace(agent, name=await self._free_name(project))
            task = await self.store.write(partial(_add, named, title, order.brief))
            if task is not None:
                self.bell.ring()
                return task, named

    async def get(self, key: str) -> Task:
        task = await self.store.read(lambda store: store.find(Task, key))
        if task is None:
            raise NotFound(f"There is no task {key}.")
        return task

    def _choose(self, order: Order, work: WorkSettings) -> tuple[Provider, dict[str, str]]:
        name = order.provider or work.provider
        if not name:
            known = ", ".join(sorted(each.name for each in self.providers.all()))
            raise BadInput(
                "No provider was named, and none is set.",
                hint=f"Add --command CMD, --script FILE or --provider NAME ({known}), "
                "or run `windlass config set work.provider NAME`.",
            )
        provider = self.providers.get(name)
        options = dict(order.options)
        if "command" in provider.options and work.command:
            options.setdefault("command", work.command)
        missing = [each for each in provider.options if each not in options]
        if missing:
            raise BadInput(f"The provider {name} needs a {missing[0]}.", hint=f"Add --{missing[0]} to `windlass work`.")
        provider.check(options)
        self.providers.require(provider)
        return provider, options

    async def _free_name(self, project: Project) -> str:
        taken = await self.store.read(lambda store: store.names_taken())
        while True:
            name = names.pick(taken, self.random)
            branch = Agent(name=name, project=project.id, provider="").branch
            if not await self.git.branch_taken(project, branch):
                return name
            taken.add(name)


def _add(agent: Agent, title: str, brief: str, store: Writing) -> Task | None:
    """Nothing, if another agent got the name since it was chosen."""
    if store.find(Agent, agent.id) is not None:
        return None
    task = Task(
        id=store.next_id(Task),
        project=agent.project,
        title=title,
        brief=brief,
        agent=agent.id,
        created_at=agent.created_at,
    )
    store.record("task.added", task.id, task, agent)
    return task


def _check_title(title: str) -> str:
    text = title.strip()
    if not text:
        raise BadInput(
            "The task has no words.", hint='Say what to do: windlass work "Fix the login race" --command CMD'
        )
    if len(text) > LONGEST_TITLE or len(text.splitlines()) > 1 or "\0" in text:
        raise BadInput(
            f"A title is one line of at most {LONGEST_TITLE} characters.", hint="Put the details into --brief."
        )
    return text
