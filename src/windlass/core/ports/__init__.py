"""Everything that the engine needs from the world, one port for each topic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from windlass.core.agents.definition import Roster
from windlass.core.messages.chat_file import Chats
from windlass.core.nouns.change import Candidate, CheckResult
from windlass.core.nouns.project import Project
from windlass.core.ports.git import Git
from windlass.core.ports.processes import Processes
from windlass.core.ports.store import Store
from windlass.core.ports.workdirs import Workdirs
from windlass.core.runs.provider import Provider
from windlass.core.runs.sandbox import Sandbox
from windlass.core.runs.worktree_setup import Setups
from windlass.core.settings.schema import CheckSettings, Settings
from windlass.core.workflows.workflow import Workflow


class Clock(Protocol):
    """The time, twice: for people, and for measuring."""

    def now(self) -> float:
        """Seconds since 1970."""
        ...

    def monotonic(self) -> float:
        """Seconds that never jump."""
        ...


class Checks(Protocol):
    """The project's own commands."""

    async def run(
        self,
        project: Project,
        candidate: Candidate,
        settings: CheckSettings,
        started_at: float,
        /,
        *,
        sandbox: Sandbox | None,
    ) -> tuple[CheckResult, str]:
        """Run setup and command on exactly the candidate's tree. Returns the verdict and the kept output.

        In the sandbox they see and write that tree besides, and find a home of their own.
        """
        ...


class Providers(Protocol):
    def get(self, name: str, /) -> Provider:
        """Raises NotFound with the near miss."""
        ...

    def all(self) -> Iterable[Provider]: ...

    def require(self, provider: Provider, /, model: str | None = None) -> None:
        """Raises Unavailable, saying how to install it, if its program is not here, or a model can't be asked."""
        ...

    def by_model(self, model: str, /) -> tuple[str, str]:
        """The provider whose model this is by its name, and what that provider calls it; nothing if it is nobody's."""
        ...


class SettingsReader(Protocol):
    """The settings in force now; files are read anew when they have changed."""

    def at(self, path: str, /) -> Settings:
        """For the project whose checkout is there; with no path, for the home alone. While a file is broken, what it
        said before counts; a project's file that was never whole is refused."""
        ...

    def check(self, path: str, /) -> None:
        """Refuse a file that is broken now."""
        ...


class Library(Protocol):
    """The agents, workflows and prompts of a repository, read from the user's own checkout."""

    @property
    def guarded(self) -> tuple[str, ...]:
        """Files, and folders ending with a slash, that say what agents are and may do."""
        ...

    async def roster(self, checkout: str, /) -> Roster:
        """The agents that are defined there, and what is wrong with its files."""
        ...

    async def workflow(self, file: str, /) -> Workflow:
        """Read a workflow's file. Raises BadInput with all of its mistakes."""
        ...

    async def blocks(self, checkout: str, /) -> Mapping[str, str]:
        """The blocks of prompts, each with what the project adds to it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The outside world, as the engine is given it."""

    store: Store
    git: Git
    processes: Processes
    workdirs: Workdirs
    chats: Chats
    checks: Checks
    providers: Providers
    settings: SettingsReader
    clock: Clock
    random: Callable[[], float]
    """A number from 0 up to 1."""
    uuid: Callable[[], str]
    library: Library
    setups: Setups
    home: str
    pid: int = 0
    """The daemon's process."""
    processors: int = 2
    token: Callable[[str], str] = lambda _: ""
    """The token of a run, by which it is known where its connection does not tell; of no run, the person's own."""
