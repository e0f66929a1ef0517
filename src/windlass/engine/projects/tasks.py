"""Tasks: add one together with the agent that does it, and find one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from windlass.core.address import Address, own_name
from windlass.core.agents import names
from windlass.core.agents.definition import Definition, homes
from windlass.core.errors import BadInput, Conflict, NotFound, WindlassError
from windlass.core.nouns.agent import NEW, WORK, Agent, Confinement, Permissions, check_model
from windlass.core.nouns.project import Project
from windlass.core.nouns.task import Mode, Task
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading, Writing
from windlass.core.radar import path_patterns
from windlass.core.runs.provider import Provider
from windlass.core.settings.schema import WorkSettings
from windlass.engine.confinement import Confinements
from windlass.engine.projects.definitions import Definitions
from windlass.engine.projects.projects import Projects
from windlass.engine.records.lookup import get

log = logging.getLogger("windlass")

LONGEST_TITLE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a person wants done, as it was typed."""

    path: str
    title: str
    brief: str = ""
    paths: tuple[str, ...] = ()
    """The files, folders or patterns that it will change, as far as known."""
    agent: str = ""
    """The agent that shall do it, by the name in its file; nothing: a new one."""
    provider: str = ""
    model: str = ""
    """Nothing: what its file says, or else its provider's own."""
    permissions: Permissions | None = None
    """Nothing: what its file says, or else to edit."""
    sandbox: Confinement | None = None
    """Nothing: what its file says, or else the setting."""
    options: Mapping[str, str] = field(default_factory=dict)
    reviews: str = ""
    """The change that it reviews."""
    mode: Mode = Mode.EXECUTE
    """The mode of a task that reviews nothing."""
    phase: str = ""
    """The id of the phase that it belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hiring:
    """An agent that a person wants to have, as it was typed."""

    path: str
    name: str
    instance: str = ""
    provider: str = ""
    model: str = ""
    role: str = ""
    prompt: str = ""
    talks: bool = False
    """Whether it may speak to other agents."""
    options: Mapping[str, str] = field(default_factory=dict)


class Tasks:
    """Adds and finds tasks."""

    def __init__(self, ports: Ports, projects: Projects, definitions: Definitions, confinement: Confinements) -> None:
        self.store = ports.store
        self.projects = projects
        self.definitions = definitions
        self.confinement = confinement
        self.git = ports.git
        self.providers = ports.providers
        self.settings = ports.settings
        self.clock = ports.clock
        self.random = ports.random

    async def add(self, order: Order) -> tuple[Task, Agent]:
        """Add a task for a new agent, or for one that the repository defines. What is refused creates nothing."""
        title, paths = _check_title(order.title), path_patterns.checked(order.paths)
        project = await self.projects.at(order.path)
        self.settings.check(project.path)
        defined = await self.definitions.find(project.path, order.agent) if order.agent else None
        others = await self.projects.others(project) if not order.reviews else []
        agent = replace(self._engaged(order, project, defined), also=tuple(other.id for other in others))
        await self.confinement.check(agent, project, reviews=bool(order.reviews))
        for other in (project, *others):
            self.settings.check(other.path)
            await self.git.main(other)
        while True:
            if defined is None:
                agent = replace(agent, name=await self._free_name(project, *others))
            task = Task(
                id="",
                project=project.id,
                title=title,
                brief=order.brief,
                parent=order.phase,
                paths=paths,
                reviews=order.reviews,
                wants=order.mode,
                created_at=self.clock.now(),
            )
            added = await self.store.write(partial(_add, agent, project.name, task))
            if added is not None:
                return added

    async def enlist(self, project: Project, name: str, defined: Definition | None = None) -> Agent:
        """An agent that the repository defines, as its file says now; nothing is stored yet."""
        defined = defined or await self.definitions.find(project.path, name)
        agent = self._engaged(Order(path=project.path, title="", agent=name), project, defined)
        await self.confinement.check(agent, project)
        return agent

    def terms(self, project: Project, defined: Definition, options: Mapping[str, str]) -> Agent:
        """An agent as a file and the settings describe it now; nothing is stored yet."""
        return self._engaged(Order(path=project.path, title="", options=options), project, defined)

    async def renewed(self, agent: Agent) -> Agent:
        """An agent from a file, as the file and the settings say now; unchanged if they can't be used any more."""
        project = await self.store.read(lambda store: store.find(Project, agent.project))
        if agent.source in (WORK, NEW) or agent.workflow or project is None:
            return agent
        try:
            today = await self.enlist(project, agent.name)
        except WindlassError as error:
            log.warning("%s goes on as it was: %s", agent.id, error)
            return agent
        return replace(
            today,
            instance=agent.instance,
            also=agent.also,
            attended=agent.attended,
            created_at=agent.created_at,
            retired_at=agent.retired_at,
        )

    async def hire(self, wanted: Hiring) -> Agent:
        """A new agent that waits to be spoken to."""
        own_name(wanted.name)
        if wanted.instance:
            own_name(wanted.instance)
        project = await self.projects.at(wanted.path)
        self.settings.check(project.path)
        role = wanted.role or f"{wanted.name}, who helps where it is asked"
        defined = Definition(name=wanted.name, role=role, file=NEW, body=wanted.prompt, provider=wanted.provider)
        order = Order(path=project.path, title="", model=wanted.model, options=wanted.options)
        agent = replace(self._engaged(order, project, defined), talks=wanted.talks, instance=wanted.instance)
        await self.confinement.check(agent, project)
        await self.git.main(project)
        await self.store.write(partial(_hire, agent))
        return agent

    async def get(self, key: str) -> Task:
        """The task with that id. Raises NotFound."""
        return await self.store.read(lambda store: get(store, Task, key))

    def _engaged(self, order: Order, project: Project, defined: Definition | None) -> Agent:
        """The agent as its file says, overridden by the typed options. A new agent has no name yet."""
        work = self.settings.at(project.path).work
        order = self._by_model(order, work, defined)
        provider, options = self._choose(order, work, defined)
        agent = Agent(name="", project=project.id, provider=provider.name, options=options, created_at=self.clock.now())
        if defined is not None:
            agent = replace(
                agent,
                name=defined.name,
                source=defined.file,
                role=defined.role,
                body=defined.body,
                model=defined.model_for(provider.name),
                permissions=defined.permissions,
                sandbox=defined.sandbox,
                persistent=defined.persistent,
            )
        model = _model(order.model, agent.model, provider)
        self.providers.require(provider, model)
        return replace(
            agent,
            model=model,
            permissions=order.permissions or agent.permissions,
            sandbox=order.sandbox or agent.sandbox,
        )

    def _by_model(self, order: Order, work: WorkSettings, defined: Definition | None) -> Order:
        """The order with the provider that its model names; as it is, if a provider is named otherwise."""
        if (
            order.provider
            or (defined and defined.provider)
            or (work.provider and self.providers.get(work.provider).own)
        ):
            return order
        of_file = defined.model if defined and not defined.habitat else ""
        provider, model = self.providers.by_model(order.model or of_file)
        return replace(order, provider=provider, model=model) if provider else order

    def _choose(self, order: Order, work: WorkSettings, defined: Definition | None) -> tuple[Provider, dict[str, str]]:
        of_file, of_folder = (defined.provider, defined.habitat) if defined else ("", "")
        name = order.provider or of_file or work.provider or of_folder
        if not name:
            raise self._nameless(defined)
        provider = self.providers.get(name)
        options = dict(order.options)
        if "command" in provider.options and work.command:
            options.setdefault("command", work.command)
        missing = [option for option in provider.options if option not in options]
        if missing:
            setting = ", or run `windlass config set work.command CMD`" if missing[0] == "command" else ""
            raise BadInput(
                f"The provider {name} needs a {missing[0]}.", hint=f"Add --{missing[0]} to `windlass work`{setting}."
            )
        provider.check(options)
        return provider, options

    def _nameless(self, defined: Definition | None) -> BadInput:
        """The error about a missing provider. For an agent from a file, only the file can name one."""
        known = ", ".join(sorted(each.name for each in self.providers.all()))
        setting = "or run `windlass config set work.provider NAME`."
        if defined:
            words, remedy = f"{defined.name} has no provider", f"Put `provider: NAME` into {defined.file} ({known}), "
        else:
            words, remedy = "No provider was named", f"Add --command CMD, --script FILE or --provider NAME ({known}), "
        return BadInput(f"{words}, and none is set.", hint=remedy + setting)

    async def _free_name(self, *projects: Project) -> str:
        refused = set[str]()
        while True:
            name = await self.store.read(partial(_free_name, refused, self.random))
            branch = Agent(name=name, project="", provider="").branch
            if not any([await self.git.branch_taken(project, branch) for project in projects]):
                return name
            refused.add(name)


def _free_name(refused: Container[str], random: Callable[[], float], store: Reading) -> str:
    return names.pick(lambda name: name in refused or bool(store.agents_named([name])), random)


def _model(typed: str, of_file: str, provider: Provider) -> str:
    """The typed model, refused if the provider takes none; else the model of its file, if the provider takes one."""
    if typed and not provider.models:
        flag = f", or write its flag into providers.{provider.name}.model_flag" if provider.own else ""
        raise BadInput(
            f"The provider {provider.name} can't be told which model to use.", hint=f"Leave --model out{flag}."
        )
    model = typed or (of_file if provider.models else "")
    if model:
        check_model(model)
    return model


def _add(agent: Agent, project: str, wanted: Task, store: Writing) -> tuple[Task, Agent] | None:
    """Store a task and its agent. None if another agent took the chosen name meanwhile."""
    if wanted.parent:
        _check_phase(store, wanted)
    if agent.stays:
        agent = _settled(agent, project, store)
    elif store.find(Agent, agent.id) is not None:
        return None
    task = replace(wanted, id=store.next_id(Task), agent=agent.id)
    store.record("task.added", task.id, task, agent)
    return task, agent


def _check_phase(store: Reading, wanted: Task) -> None:
    """Refuse a phase that is not in this project, or has ended."""
    phase = store.find(Task, wanted.parent)
    if phase is None or phase.project != wanted.project:
        raise NotFound(
            f"There is no task {wanted.parent} in this project.", hint="`windlass list` shows those there are."
        )
    if phase.ended:
        raise BadInput(
            f"{phase.id} is {phase.state}, so nothing can be put into it.",
            hint="Leave --phase out, or name a task that goes on: `windlass list` shows them.",
        )


def _hire(agent: Agent, store: Writing) -> None:
    known = store.find(Agent, agent.id)
    if known is not None:
        raise Conflict(f"There is an agent {agent.id} already.", hint=f"`windlass show {agent.id}` says which.")
    store.record("agent.added", agent.id, agent)


def _settled(agent: Agent, project: str, store: Writing) -> Agent:
    """An agent from a file, with the id that it has in this project and all else as its file says now."""
    for key in homes(agent.name, project):
        known = store.find(Agent, key)
        if known is None:
            return replace(agent, instance=Address.parse(key).instance)
        if known.project == agent.project and known.stays:
            _refuse_other_terms(known, agent, store)
            return replace(agent, instance=known.instance, created_at=known.created_at)
    raise Conflict(f"Every name that {agent.name} could have is taken.", hint="Give it another name in its file.")


def _refuse_other_terms(known: Agent, wanted: Agent, store: Writing) -> None:
    """Refuse other options for an agent with an unfinished task: its session belongs to its provider."""
    if (known.provider, dict(known.options)) == (wanted.provider, dict(wanted.options)):
        return
    at = [task.id for task in store.unfinished_tasks(agent=known.id)]
    if at:
        raise Conflict(
            f"{known.id} works on {at[0]} with the provider {known.provider}, and can't change to {wanted.provider} now"
            if known.provider != wanted.provider
            else f"{known.id} works on {at[0]}, and can't be started in another way before that has ended",
            hint=f"Wait until it has ended, or run `windlass stop {known.id}`.",
        )


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
