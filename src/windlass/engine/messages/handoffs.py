"""Handing work on: what is given with it, and to whom an agent may."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windlass.core.address import Address
from windlass.core.agents.definition import PEOPLE
from windlass.core.display import some
from windlass.core.errors import NotAllowed
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.message import Kind
from windlass.core.nouns.project import Project
from windlass.core.ports import Ports
from windlass.engine.records import instances


@dataclass(frozen=True, slots=True, kw_only=True)
class Handoff:
    """What is given on with a piece of work."""

    done: str = ""
    needed: str = ""
    files: tuple[str, ...] = ()
    why: str = ""

    def told(self, body: str) -> str:
        """All of it as one text."""
        parts = [("Done", self.done), ("Needed", self.needed), ("Files", ", ".join(self.files)), ("Why", self.why)]
        return "\n".join([body, *(f"{name}: {text}" for name, text in parts if text)]).strip()


@dataclass(frozen=True, slots=True)
class Terms:
    """To whom one may hand work."""

    names: tuple[str, ...] = ()
    """Nobody: to anyone."""
    file: str = ""
    """What says so."""


class Handoffs:
    """Knows to whom each agent may hand work, and holds it to that."""

    def __init__(self, ports: Ports) -> None:
        self.store = ports.store
        self.library = ports.library

    async def terms(self, agent: Agent, project: Project) -> Terms:
        """What an agent's file says, or the file of its workflow."""
        if agent.workflow:
            instance = await self.store.read(lambda store: instances.of_agent(store, agent))
            return Terms(instance.handoffs.get(agent.name, ()), instance.source) if instance else Terms()
        found = (await self.library.roster(project.path)).find(agent.name)
        return Terms(found.handoff_to, found.file) if found else Terms()

    async def check(self, agent: Agent, project: Project, kind: Kind, called: Sequence[str]) -> None:
        """Refuse to call those to whom this agent may not hand work. Answers and questions hand nothing on."""
        terms = await self.terms(agent, project)
        others = [each for each in called if terms.names and not _is_among(each, (*terms.names, *PEOPLE))]
        if not others or kind is Kind.ASK:
            return
        if kind is not Kind.HANDOFF:
            heard = await self.store.read(lambda store: store.wrote_to(agent.id, others))
            others = [other for other in others if other not in heard]
        if others:
            raise NotAllowed(
                f"{agent.name} may not hand work to {others[0]}: its file allows {', '.join(terms.names)}.",
                hint=f"Hand it to {some(terms.names)}; only a person adds others to handoff_to in {terms.file}.",
            )


def _is_among(reader: str, names: Sequence[str]) -> bool:
    return Address.parse(reader).name in names
