"""Who is meant: from what was typed to agents, those that the repository only defines among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from windlass.core.address import HUMAN, SYSTEM, Address
from windlass.core.agents.definition import Roster, home_of, homes, is_home
from windlass.core.agents.triggers import called_by, candidates
from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput, NotAllowed, NotFound
from windlass.core.messages.mentions import strangers
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.project import Project
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading
from windlass.engine.projects.tasks import Tasks
from windlass.engine.records import instances as started

MOST = 10_000


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who speaks: a person, or an agent in one of its runs."""

    address: str
    project: str = ""
    """An agent's own."""
    run: str = ""

    @property
    def is_person(self) -> bool:
        return self.address == str(HUMAN)


@dataclass(frozen=True, slots=True)
class Readers:
    """Whom a message is for."""

    to: tuple[str, ...]
    new: tuple[Agent, ...] = ()
    """Those of them that are only defined so far."""
    ids: Mapping[str, str] = field(default_factory=dict)
    """Whom each name that was typed stands for."""


class Directory:
    """Everyone in a project who can be written to."""

    def __init__(self, ports: Ports, tasks: Tasks) -> None:
        self.store = ports.store
        self.library = ports.library
        self.tasks = tasks

    async def names(self, project: Project, speaker: Speaker) -> dict[str, str]:
        """Every name that may be used in a project, by whoever speaks, and the id that it stands for."""
        agents = await self.store.read(lambda store: _agents(store, project))
        roster = await self.library.roster(project.path)
        names = {definition.name: "" for definition in roster.definitions}
        names |= {agent.id: agent.id for agent in agents}
        names |= {agent.name: agent.id for agent in agents if is_home(agent.instance, project.name)}
        own = Address.parse(speaker.address).instance if not speaker.is_person else ""
        names |= {agent.name: agent.id for agent in agents if own and agent.instance == own}
        return names | {str(HUMAN): str(HUMAN)}

    async def missed(self, project: Project, speaker: Speaker, body: str) -> str:
        """Of a text that is for nobody: whom it seems to mention, and who was probably meant."""
        names = await self.names(project, speaker)
        unknown = strangers(body, names)
        meant = " ".join(filter(None, (near_miss(each, names) for each in unknown)))
        return f"There is no {', '.join(f'@{each}' for each in unknown)} here. {meant}".strip() if unknown else ""

    async def unmet(self, project: Project) -> list[tuple[str, str]]:
        """Agents that the repository defines and that have never worked, each with its role: a word starts them."""
        agents = await self.store.read(lambda store: _agents(store, project))
        met = {agent.name for agent in agents if is_home(agent.instance, project.name)}
        roster = await self.library.roster(project.path)
        return [(definition.name, definition.role) for definition in roster.definitions if definition.name not in met]

    async def meant(self, project: Project, body: str) -> str:
        """Whom a person's words are for that name nobody: by triggers, or the only one at work. Raises BadInput."""
        roster = await self.library.roster(project.path)
        own = await self.store.read(partial(_triggers, project.id))
        triggers = {definition.name: definition.triggers for definition in roster.definitions} | own
        called = called_by(body, triggers)
        if len(called) == 1:
            return called[0]
        agents = await self.store.read(lambda store: _agents(store, project))
        active = [agent.id for agent in agents if agent.retired_at is None]
        if not called and len(active) == 1:
            return active[0]
        listed = candidates(triggers, called or dict.fromkeys((*active, *triggers)))
        words = f"It could be for {listed}." if called else "It is for nobody: it mentions no agent, and calls none."
        others = "" if called or not listed else f" There are {listed}."
        raise BadInput(
            words,
            hint=f"Say for whom: --to NAME, or @NAME in the text; --all is everyone, --channel main posts it.{others}",
        )

    async def named(self, project: Project, speaker: Speaker, typed: Iterable[str]) -> Readers:
        """Those who were typed: `name`, `name@instance`, `@instance`. Raises NotFound with the near miss."""
        names = await self.names(project, speaker)
        agents = await self.store.read(lambda store: _agents(store, project))
        roster = await self.library.roster(project.path)
        to: list[str] = []
        new: list[Agent] = []
        ids: dict[str, str] = {}
        for text in typed:
            address = Address.parse(text)
            if address == SYSTEM:
                raise NotAllowed("Nobody can write to the system.", hint="Write to human, or to an agent.")
            if not address.name:
                _check_near(speaker, address, project)
                to += _everyone(agents, address.instance, speaker, text, names)
            elif names.get(text):
                ids[text] = names[text]
                to.append(names[text])
            else:
                _check_place(speaker, address, agents)
                made = await self._enlisted(project, address, names, roster)
                new.append(made)
                ids[text] = made.id
                to.append(made.id)
        return Readers(tuple(dict.fromkeys(to)), tuple(new), ids)

    async def known(self, project: Project, speaker: Speaker, name: str) -> str:
        """The id of the agent, or of the person, that a name stands for. Raises NotFound with the near miss."""
        if name.startswith("@"):
            raise BadInput(
                f"{name} is everyone there; one agent is needed here.",
                hint=f"`windlass peek --channel {name}` shows what is said there.",
            )
        names = await self.names(project, speaker)
        if name not in names:
            raise NotFound(f"There is no agent {name} here.", hint=near_miss(name, names) or NotFound.hint)
        return names[name] or name

    async def newcomers(self, project: Project, typed: Iterable[str]) -> str:
        """Of those who are about to be written to, whose instance is not there yet: a sentence, or nothing."""
        there = await self.store.read(partial(instances, project.id))
        several = [(text, Address.parse(text)) for text in typed]
        new = [(text, f"@{each.instance}") for text, each in several if each.name and each.instance]
        return " ".join(_novel(text, place, there) for text, place in new if place not in there)

    async def all(self, project: Project, speaker: Speaker, channel: str = "") -> Readers:
        """Everyone at work in a project, or at home in a channel, but the speaker."""
        agents = await self.store.read(lambda store: _agents(store, project))
        at_work = [agent for agent in agents if agent.retired_at is None]
        there = [each for each in at_work if channel in ("", home_of(each.instance, project.name))]
        others = [each.id for each in there if each.id != speaker.address]
        return Readers(tuple(others) if speaker.is_person else (*others, str(HUMAN)))

    async def _enlisted(self, project: Project, address: Address, names: dict[str, str], roster: Roster) -> Agent:
        """An agent that the repository defines, and that has never worked; under its own name, or in an instance."""
        roster.check(address.name)
        if roster.find(address.name) is None:
            known = [name for name in names if name]
            listed = f"There are: {', '.join(sorted(known))}."
            raise NotFound(
                f"There is no agent {address} here.", hint=f"{near_miss(str(address), known)} {listed}".strip()
            )
        agent = await self.tasks.enlist(project, address.name)
        return replace(agent, instance=address.instance) if address.instance else agent


def _triggers(project: str, store: Reading) -> dict[str, tuple[str, ...]]:
    """What calls the agents of instances that are running."""
    live = (each for each in started.live(store) if each.project == project)
    return {name: tuple(words) for each in live for name, words in each.triggers.items()}


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


def instances(project: str, store: Reading) -> list[str]:
    """The instances in a project that have agents, as they are written: `@pr-7`."""
    found = (*store.agents(limit=MOST), *store.agents(retired=True, limit=MOST))
    return sorted({f"@{each.instance}" for each in found if each.project == project and each.instance})


def _novel(text: str, place: str, there: list[str]) -> str:
    meant = near_miss(place, there)
    return f"{place} is a new instance." + (f" {meant} `windlass stop {text}` ends what was begun." if meant else "")


def _agents(store: Reading, project: Project) -> list[Agent]:
    """Those of a project: at work, and those whose work is finished."""
    found = (*store.agents(limit=MOST), *store.agents(retired=True, limit=MOST))
    return [each for each in found if each.project == project.id]


def _check_near(speaker: Speaker, address: Address, project: Project) -> None:
    """An agent of an instance speaks to all of its own, and of no other: instances do not hear each other."""
    own = "" if speaker.is_person else Address.parse(speaker.address).instance
    if not is_home(own, project.name) and own != address.instance:
        raise NotAllowed(
            f"{speaker.address} can't speak to all of {address}.", hint=f"It is in @{own}; name those whom you mean."
        )


def _check_place(speaker: Speaker, address: Address, agents: list[Agent]) -> None:
    """Only a person begins an instance: else one agent could start any number of others."""
    there = {agent.instance for agent in agents}
    if address.instance and address.instance not in there and not speaker.is_person:
        raise NotAllowed(
            f"There is no instance @{address.instance}, and only a person begins one.",
            hint=f"Write to {address.name}, or ask a person.",
        )


def _everyone(agents: list[Agent], instance: str, speaker: Speaker, text: str, names: Mapping[str, str]) -> list[str]:
    members = [agent for agent in agents if agent.instance == instance]
    there = [member.id for member in members if member.retired_at is None]
    if not there:
        raise NotFound(f"Nobody is in {text}.", hint=_instead(text, [*members], agents, names))
    return [each for each in there if each != speaker.address]


def _instead(text: str, gone: list[Agent], agents: list[Agent], names: Mapping[str, str]) -> str:
    """What to write, where nobody is in an instance."""
    if gone:
        return f"All there have finished; name one to wake it, like {gone[-1].id}."
    if text[1:] in names:
        return f"{text[1:]} is an agent: write {text[1:]}, without the @."
    known = sorted({f"@{agent.instance}" for agent in agents if agent.instance and agent.retired_at is None})
    listed = f"There are: {', '.join(known)}." if known else "No agent here belongs to one."
    return f"{near_miss(text, known)} {listed}".strip()
