"""Everything that the engine needs from the world, one port for each topic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from windlass.core.messages.chat_file import Chats
from windlass.core.ports.checks import Checks
from windlass.core.ports.clock import Clock
from windlass.core.ports.git import Git
from windlass.core.ports.library import Library
from windlass.core.ports.processes import Processes
from windlass.core.ports.providers import Providers
from windlass.core.ports.settings import SettingsReader
from windlass.core.ports.store import Store
from windlass.core.ports.workdirs import Workdirs
from windlass.core.runs.worktree_setup import Setups


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
    """Our folder."""
    pid: int = 0
    """The daemon's process."""
    processors: int = 2
    """Processors of the machine."""
    token: Callable[[str], str] = lambda _: ""
    """The token of a run, by which it is known where its connection does not tell; of no run, the person's own."""
