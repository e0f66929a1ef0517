"""The agents that a repository defines."""

from __future__ import annotations

from dataclasses import replace

from windlass.core.agents.definition import Definition, Roster
from windlass.core.did_you_mean import near_miss
from windlass.core.errors import NotFound
from windlass.core.files.problems import FileProblem, Gravity
from windlass.core.ports import Ports
from windlass.engine.projects.projects import Projects


class Definitions:
    """Reads them anew whenever they are asked for: a file is the truth about its agent."""

    def __init__(self, ports: Ports, projects: Projects) -> None:
        self.library = ports.library
        self.providers = ports.providers
        self.projects = projects

    async def at(self, path: str) -> Roster:
        """Those of the repository at a path, and what is wrong with its files."""
        roster = await self.library.roster(await self.projects.locate(path))
        unknown = filter(None, map(self._unknown, roster.definitions))
        return replace(roster, problems=(*roster.problems, *unknown))

    def _unknown(self, definition: Definition) -> FileProblem | None:
        """A warning about an unknown provider: others may describe it in their settings."""
        try:
            if definition.provider:
                self.providers.get(definition.provider)
        except NotFound as error:
            words = f"{error} {error.hint}"
            return FileProblem(
                file=definition.file, line=definition.provider_line, words=words, gravity=Gravity.WARNING
            )
        return None

    async def find(self, checkout: str, name: str) -> Definition:
        """The definition of an agent. Raises NotFound with the known names, or BadInput with the fault in its file."""
        roster = await self.library.roster(checkout)
        found = roster.find(name)
        if found is not None:
            return found
        roster.check(name)
        known = [definition.name for definition in roster.definitions]
        listed = f"The agents here are: {', '.join(known)}." if known else "Write .windlass/agents/NAME.md to have one."
        raise NotFound(f"No agent {name} is defined here.", hint=f"{near_miss(name, known)} {listed}".strip())
