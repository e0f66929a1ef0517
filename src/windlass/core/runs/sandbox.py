"""The sandbox of a run: what it sees, what it may write, and whether it needs one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windlass.core.errors import BadInput, Unavailable
from windlass.core.nouns.agent import Agent, Confinement, Permissions
from windlass.core.nouns.project import Project
from windlass.core.runs.provider import Provider
from windlass.core.runs.workdir import Site
from windlass.core.settings.schema import SandboxSettings

UNENFORCED = "unenforced"
"""Shown for a run without a sandbox: it has the user's own rights."""
DOOR = "door"
"""The folder of our home with the daemon's socket in it. A folder, because each daemon makes a socket of its own."""
SOCKET = "daemon.sock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """What a run may touch. A path may begin with `~/` or `$NAME/`, and what begins with neither nor `/` is below the
    home. What is not there is left out."""

    own: str
    """A folder of its agent's, kept from run to run: what it finds in the place of the user's home is in there."""
    files: tuple[tuple[str, str], ...] = ()
    """Files that are put into that home: each path in it, and its text."""
    hidden: tuple[str, ...] = ()
    """Folders that it finds empty, besides the home and those for temporary files."""
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    """Files of the user's that it can't change: folders to read, files as copies of its own."""
    links: tuple[tuple[str, str], ...] = ()
    """Symbolic links: each path, and where it leads."""
    network: bool = True


@dataclass(frozen=True, slots=True)
class SandboxKeeper:
    """The sandbox program of this machine."""

    name: str
    problem: str = ""
    """Why it does not work, in one sentence."""
    hint: str = ""


def wanted(agent: Agent, settings: SandboxSettings) -> Confinement:
    """The confinement that the agent asks for, or else the setting."""
    return settings.mode if agent.sandbox is Confinement.AUTO else agent.sandbox


def wanted_for_checks(settings: SandboxSettings) -> Confinement:
    """The confinement of checks: as the setting says, or else like that of agents."""
    return settings.mode if settings.checks is Confinement.AUTO else settings.checks


def decide_sandbox(wanted: Confinement, keeper: SandboxKeeper) -> str:
    """The program that keeps a run in a sandbox; nothing if it has none."""
    if wanted is Confinement.OFF or (wanted is Confinement.AUTO and keeper.problem):
        return ""
    return keeper.name


def require(wanted: Confinement, keeper: SandboxKeeper) -> None:
    """Raise Unavailable if the sandbox must be on and there is none."""
    if wanted is Confinement.ON and keeper.problem:
        raise Unavailable(f"The sandbox is on, but there is none: {keeper.problem}", hint=keeper.hint)


def require_hold(agent: Agent, provider: Provider, keeper: str) -> None:
    """Refuse to start an agent that may only read where nothing would keep it from more."""
    if agent.permissions is not Permissions.READ or provider.reads or keeper:
        return
    flags = f"Write the flags for it into [providers.{provider.name}.permissions], or keep" if provider.own else "Keep"
    raise BadInput(
        f"The provider {provider.name} can't be held to reading without a sandbox.",
        hint=f"{flags} it in one: `--sandbox on` (`windlass doctor` says whether there is one).",
    )


def enclosure(
    *,
    home: str,
    site: Site,
    provider: Provider,
    places: Sequence[str],
    readable: Sequence[str],
    writable: Sequence[str],
    settings: SandboxSettings,
) -> Sandbox:
    """The sandbox of a run: the places it works at, what its provider and its git need, and what the user adds.

    `home` is our own folder, of which it sees what is named and no more. An agent that may only read can't write to
    them either, except where its signal goes.
    """
    may_write = site.agent.permissions is not Permissions.READ
    own = places if may_write else [f"{places[0]}/.windlass"]
    return Sandbox(
        own=own_folder(home, site.agent),
        hidden=(home, *(project.path for project in site.projects)),
        readable=(f"{home}/{DOOR}", *places, *readable, *settings.readable),
        writable=(*own, *writable, *provider.folders, *settings.writable),
        protected=provider.protected,
        links=((f"{home}/{SOCKET}", f"{DOOR}/{SOCKET}"),),
        network=settings.network,
    )


def enclosure_of_checks(*, home: str, project: Project, settings: SandboxSettings) -> Sandbox:
    """The sandbox of a project's checks. Whoever runs them adds the tree, and the folder that stands for the home.

    It has no part in a login, and not the daemon's socket: code that an agent wrote is nobody there.
    """
    return Sandbox(
        own="",
        hidden=(home, project.path),
        readable=settings.readable,
        writable=settings.writable,
        network=settings.network,
    )


def own_folder(home: str, agent: Agent) -> str:
    """The folder with an agent's stand-in for the user's home."""
    return f"{home}/homes/{agent.id}"
