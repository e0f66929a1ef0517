"""To whom an agent may hand work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windlass.core.address import Address
from windlass.core.agents.definition import PEOPLE, Roster
from windlass.core.display import some
from windlass.core.errors import NotAllowed
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.message import Kind
from windlass.core.ports.store import Reading
from windlass.core.workflows.instance import Instance


@dataclass(frozen=True, slots=True)
class HandoffRule:
    """To whom one agent may hand work."""

    names: tuple[str, ...] = ()
    """Nobody: to anyone."""
    file: str = ""
    """The file that says so."""


def handoff_rule(agent: Agent, instance: Instance | None, roster: Roster) -> HandoffRule:
    """The rule in an agent's file, or in the file of the workflow whose instance it takes part in."""
    if agent.workflow:
        return HandoffRule(instance.handoffs.get(agent.name, ()), instance.source) if instance else HandoffRule()
    found = roster.find(agent.name)
    return HandoffRule(found.handoff_to, found.file) if found else HandoffRule()


def check_handoff(store: Reading, agent: Agent, rule: HandoffRule, kind: Kind, readers: Sequence[str]) -> None:
    """Refuse to call those to whom this agent may not hand work. Answers and questions hand nothing on."""
    allowed = (*rule.names, *PEOPLE)
    others = [reader for reader in readers if rule.names and Address.parse(reader).name not in allowed]
    if not others or kind is Kind.ASK:
        return
    if kind is not Kind.HANDOFF:
        heard = store.wrote_to(agent.id, others)
        others = [other for other in others if other not in heard]
    if others:
        raise NotAllowed(
            f"{agent.name} may not hand work to {others[0]}: its file allows {', '.join(rule.names)}.",
            hint=f"Hand it to {some(rule.names)}; only a person adds others to handoff_to in {rule.file}.",
        )
