"""What else a daemon is given, as a person can set it at any moment: settings, providers, agent files, set-ups."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from typing import Any

from sim_watch import Witness

from fakes import FakeLibrary, FakeSetups
from windlass.core.agents.definition import Definition, Roster
from windlass.core.nouns.run import RunTrouble, TroubleKind, Usage
from windlass.core.runs.provider import DoneSign, LineReading, Provider
from windlass.core.runs.worktree_setup import PreparedWorktree
from windlass.core.settings.schema import CheckSettings, Limits, ProjectSettings, Settings, WorktreeSettings
from windlass.providers import FoundProviders

HOME, REPOSITORY, OTHER = "/sim/home", "/sim/repository", "/sim/other"
CHECK = "check"
KEEPER = "keeper"
"""An agent that stays, from a file of the repository."""


class SetSettings:
    """Settings that a person can change at any moment."""

    def __init__(self, witness: Witness) -> None:
        self.witness = witness
        self.settings = Settings(checks=CheckSettings(command=CHECK), limits=Limits(returns=2))
        self.repositories: tuple[str, ...] = ()
        self.limit(2)

    def at(self, path: str, /) -> Settings:
        return self._whole if path == REPOSITORY else self.settings

    def check(self, path: str, /) -> None:
        """There is no file to be broken."""

    def limit(self, runs: int) -> None:
        self.witness.most = max(self.witness.most, runs)
        self._set(limits=replace(self.settings.limits, runs=runs))

    def check_with(self, command: str) -> None:
        self._set(checks=CheckSettings(command=command))

    def prepare_with(self, command: str) -> None:
        self._set(worktree=WorktreeSettings(setup=command, ports=10 if command else 0))

    def work_in(self, *repositories: str) -> None:
        """Other repositories that agents change, too."""
        self.repositories = repositories
        self._set()

    def _set(self, **changed: Any) -> None:
        self.settings = replace(self.settings, **changed)
        self._whole = replace(self.settings, project=ProjectSettings(repositories=self.repositories))


def _read(line: str) -> LineReading:
    kind, _, rest = line.partition(" ")
    match kind:
        case "session":
            return LineReading(session=rest)
        case "cost":
            return LineReading(usage=Usage(1, 1, 0.25))
        case "result":
            return LineReading(result=rest, ended=True)
        case "trouble":
            trouble, _, until = rest.partition(" ")
            return LineReading(trouble=RunTrouble(TroubleKind(trouble), "so it said", float(until) if until else None))
    return LineReading(text=line)


PROVIDERS = FoundProviders(
    {
        "plain": Provider(name="plain", summary="ends with 0", argv=lambda _: ("plain",), claim=DoneSign.EXIT),
        "talker": Provider(
            name="talker", summary="says so", argv=lambda start: ("talker", start.session), read=_read, resumes=True
        ),
    }
)


def agent_files() -> FakeLibrary:
    """The repository has one agent file."""
    library = FakeLibrary()
    keeper = Definition(name=KEEPER, role="Keeps it.", file=".windlass/agents/keeper.md", provider="plain")
    library.rosters[REPOSITORY] = Roster((keeper,))
    return library


class SimSetups(FakeSetups):
    """Set-ups that take their time, and fail as they are told."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self.chance = chance
        self.failures = 0
        self.calm = False

    async def prepare(self, *given: Any, **named: Any) -> PreparedWorktree:
        if not self.calm:
            await asyncio.sleep(self.chance.choice((0, 0, 0.3)))
        self.answer = PreparedWorktree(output="making\n", failure="exit code 1" if self.failures > 0 else "")
        self.failures = max(0, self.failures - 1)
        return await super().prepare(*given, **named)
