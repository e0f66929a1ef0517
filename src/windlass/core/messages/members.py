"""Everyone in a project who can be written to, and whom a typed name stands for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from windlass.core.address import HUMAN, SYSTEM, Address, own_name
from windlass.core.agents.definition import Roster, home_of, is_home
from windlass.core.agents.triggers import called_by, candidates
from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput, NotAllowed, NotFound
from windlass.core.messages.mentions import strangers
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.project import Project


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

    @property
    def instance(self) -> str:
        return "" if self.is_person else Address.parse(self.address).instance

    @property
    def own_names(self) -> tuple[str, str]:
        """What a speaker may call itself: its bare name means nobody else in its own instance."""
        return self.address, Address.parse(self.address).name


@dataclass(frozen=True, slots=True)
class Readers:
    """Whom a message is for."""

    to: tuple[str, ...] = ()
    new: tuple[Address, ...] = ()
    """Those of them that are only defined so far."""
    ids: Mapping[str, str] = field(default_factory=dict)
    """Whom each typed name stands for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """The agents of a project: those that have worked, and those that its repository only defines."""

    project: Project
    agents: Sequence[Agent]
    """Also the retired ones."""
    roster: Roster = field(default_factory=Roster)
    triggers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The trigger words of the agents of running instances."""

    def names(self, speaker: Speaker) -> dict[str, str]:
        """Every name that a speaker may use, and the id it stands for: none for an agent that is only defined."""
        names = {definition.name: "" for definition in self.roster.definitions}
        names |= {agent.id: agent.id for agent in self.agents}
        names |= {agent.name: agent.id for agent in self.agents if is_home(agent.instance, self.project.name)}
        own = speaker.instance
        names |= {agent.name: agent.id for agent in self.agents if own and agent.instance == own}
        return names | {str(HUMAN): str(HUMAN)}

    def instances(self) -> list[str]:
        """The instances that have agents, as they are written: `@pr-7`."""
        return sorted({f"@{agent.instance}" for agent in self.agents if agent.instance})

    def not_started(self) -> list[tuple[str, str]]:
        """The name and role of each agent that the repository defines and that has never worked."""
        met = {agent.name for agent in self.agents if is_home(agent.instance, self.project.name)}
        return [(each.name, each.role) for each in self.roster.definitions if each.name not in met]

    def find(self, speaker: Speaker, name: str) -> str:
        """The id of the agent, or of the person, with this name; none for an agent that is only defined.

        Raises NotFound with the near miss."""
        if name.startswith("@"):
            raise BadInput(
                f"{name} is everyone there; one agent is needed here.",
                hint=f"`windlass peek --channel {name}` shows what is said there.",
            )
        names = self.names(speaker)
        if name not in names:
            raise NotFound(f"There is no agent {name} here.", hint=near_miss(name, names) or NotFound.hint)
        return names[name]

    def resolve(self, speaker: Speaker, typed: Iterable[str]) -> Readers:
        """The readers that were typed: `name`, `name@instance`, `@instance`. Raises NotFound with the near miss."""
        names = self.names(speaker)
        to: list[str] = []
        new: list[Address] = []
        ids: dict[str, str] = {}
        for text in typed:
            address = Address.parse(text)
            if address == SYSTEM:
                raise NotAllowed("Nobody can write to the system.", hint="Write to human, or to an agent.")
            if not address.name:
                to += self._all_of(speaker, address, names)
                continue
            if not names.get(text):
                self._check_new(speaker, address, names)
                new.append(address)
            ids[text] = names.get(text) or text
            to.append(ids[text])
        return Readers(tuple(dict.fromkeys(to)), tuple(new), ids)

    def everyone(self, speaker: Speaker, channel: str = "") -> Readers:
        """All who are at work in the project, or at home in a channel, but the speaker."""
        there = [
            agent.id
            for agent in self.agents
            if agent.retired_at is None and channel in ("", home_of(agent.instance, self.project.name))
        ]
        others = tuple(name for name in there if name != speaker.address)
        return Readers(others if speaker.is_person else (*others, str(HUMAN)))

    def called(self, body: str) -> str:
        """The reader of a person's words that name nobody: by triggers, or the only one at work. Raises BadInput."""
        triggers = {each.name: each.triggers for each in self.roster.definitions} | dict(self.triggers)
        called = called_by(body, triggers)
        if len(called) == 1:
            return called[0]
        active = [agent.id for agent in self.agents if agent.retired_at is None]
        if not called and len(active) == 1:
            return active[0]
        listed = candidates(triggers, called or dict.fromkeys((*active, *triggers)))
        words = f"It could be for {listed}." if called else "It is for nobody: it mentions no agent, and calls none."
        others = "" if called or not listed else f" There are {listed}."
        raise BadInput(
            words,
            hint=f"Say for whom: --to NAME, or @NAME in the text; --all is everyone, --channel main posts it.{others}",
        )

    def hint_about_mentions(self, speaker: Speaker, body: str) -> str:
        """Whom a text that is for nobody seems to mention, and who was probably meant; or nothing."""
        names = self.names(speaker)
        unknown = strangers(body, names)
        meant = " ".join(filter(None, (near_miss(name, names) for name in unknown)))
        return f"There is no {', '.join(f'@{name}' for name in unknown)} here. {meant}".strip() if unknown else ""

    def hint_about_instances(self, typed: Iterable[str]) -> str:
        """Which of the typed readers belong to instances that begin with this message; or nothing."""
        there, hints = self.instances(), []
        for text in typed:
            address = Address.parse(text)
            place = f"@{address.instance}"
            if address.name and address.instance and place not in there:
                meant = near_miss(place, there)
                ending = f" {meant} `windlass stop {text}` ends what was begun." if meant else ""
                hints.append(f"{place} is a new instance.{ending}")
        return " ".join(hints)

    def _all_of(self, speaker: Speaker, address: Address, names: Mapping[str, str]) -> list[str]:
        """All at work in an instance but the speaker. An agent of another instance may not speak to all of them."""
        own = speaker.instance
        if not is_home(own, self.project.name) and own != address.instance:
            raise NotAllowed(
                f"{speaker.address} can't speak to all of {address}.",
                hint=f"It is in @{own}; name those whom you mean.",
            )
        members = [agent for agent in self.agents if agent.instance == address.instance]
        there = [agent.id for agent in members if agent.retired_at is None]
        if there:
            return [name for name in there if name != speaker.address]
        if members:
            hint = f"All there have finished; name one to wake it, like {members[-1].id}."
        elif address.instance in names:
            hint = f"{address.instance} is an agent: write {address.instance}, without the @."
        else:
            active = (agent.instance for agent in self.agents if agent.instance and agent.retired_at is None)
            known = sorted({f"@{instance}" for instance in active})
            listed = f"There are: {', '.join(known)}." if known else "No agent here belongs to one."
            hint = f"{near_miss(str(address), known)} {listed}".strip()
        raise NotFound(f"Nobody is in {address}.", hint=hint)

    def _check_new(self, speaker: Speaker, address: Address, names: Mapping[str, str]) -> None:
        """Refuse an agent that no file defines, and an instance that an agent would begin: only a person may."""
        if address.instance and f"@{address.instance}" not in self.instances():
            if not speaker.is_person:
                raise NotAllowed(
                    f"There is no instance @{address.instance}, and only a person begins one.",
                    hint=f"Write to {address.name}, or ask a person.",
                )
            own_name(address.instance)
        self.roster.check(address.name)
        if self.roster.find(address.name) is None:
            listed = f"There are: {', '.join(sorted(names))}."
            raise NotFound(
                f"There is no agent {address} here.", hint=f"{near_miss(str(address), names)} {listed}".strip()
            )
