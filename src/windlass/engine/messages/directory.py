"""Who can be written to: agents that have worked, and those that the repository only defines."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from windlass.core.address import Address
from windlass.core.agents.definition import Roster, homes
from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput, NotFound
from windlass.core.messages.members import Members, Readers, Speaker
from windlass.core.messages.new_message import NewMessage
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.project import Project
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading
from windlass.engine.projects.tasks import Tasks


class Directory:
    """Reads the members of a project, and prepares those who have never worked."""

    def __init__(self, ports: Ports, tasks: Tasks) -> None:
        self.store = ports.store
        self.library = ports.library
        self.tasks = tasks

    async def members(self, project: Project) -> Members:
        """Everyone in a project, by one read of the store and one of the agents' files."""
        found = await self.store.read(partial(members, project))
        return replace(found, roster=await self.library.roster(project.path))

    async def find(self, project: Project, speaker: Speaker, name: str) -> str:
        """The id that the agent with this name has, or will get; also the person's. Raises NotFound with a near miss.

        An agent of another project may have the name itself: then this project's gets another id.
        """
        known = (await self.members(project)).find(speaker, name)
        new = Agent(name=name, project=project.id, provider="")
        return known or await self.store.read(lambda store: settled(store, new, project).id)

    async def check_agent(self, name: str) -> Agent:
        """The agent of any project with this id. Raises NotFound with the near miss."""

        def question(store: Reading) -> Agent:
            found = store.find(Agent, name)
            if found is None:
                names = (agent.id for agent in _agents(store))
                raise NotFound(f"There is no agent {name}.", hint=f"{near_miss(name, names)} {NotFound.hint}".strip())
            return found

        return await self.store.read(question)

    async def not_started(self, project: str) -> list[tuple[str, str]]:
        """The name and role of each agent that a project's repository defines and that has never worked."""
        found = await self.store.read(lambda store: store.find(Project, project))
        return (await self.members(found)).not_started() if found else []

    async def enlist(self, project: Project, readers: Readers, roster: Roster) -> tuple[Agent, ...]:
        """The readers who have never worked, as their files describe them; nothing is stored yet."""
        agents = []
        for address in readers.new:
            agent = await self.tasks.enlist(project, address.name, roster.find(address.name))
            agents.append(replace(agent, instance=address.instance))
        return tuple(agents)


def members(project: Project, store: Reading) -> Members:
    """All that the store knows about the members of a project."""
    return Members(project=project, agents=_agents(store, project.id))


def members_for(project: Project, new: NewMessage, store: Reading) -> Members:
    """The members who may read a message: those at work, and of those who have finished the ones that it names.

    Also the triggers of running instances, if it looks for its reader.
    """
    live = store.instances(project=project.id, live=True) if new.seeks else []
    words = {name: tuple(words) for instance in live for name, words in instance.triggers.items()}
    named = store.agents_named(new.names(), project=project.id)
    finished = [agent for agent in named if agent.retired_at is not None]
    return Members(project=project, agents=[*store.agents(project=project.id), *finished], triggers=words)


def _agents(store: Reading, project: str = "") -> list[Agent]:
    return [*store.agents(project=project), *store.agents(project=project, retired=True)]


def settled(store: Reading, agent: Agent, project: Project) -> Agent:
    """An agent that was only defined, under the id that it has in this project."""
    if agent.instance:
        found = store.find(Agent, agent.id) or agent
        if found.project != agent.project:
            raise BadInput(f"{agent.id} is an agent of another project.", hint="Choose another instance.")
        return found
    for key in homes(agent.name, project.name):
        known = store.find(Agent, key)
        if known is None:
            return replace(agent, instance=Address.parse(key).instance)
        if known.project == agent.project and known.stays:
            return known
    raise BadInput(f"Every name that {agent.name} could have is taken.", hint="Give it another name in its file.")
