"""What the engine needs from the world, and no more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from windlass.core.agents.definition import Roster
from windlass.core.messages.chat_file import Chats
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Candidate, CheckResult, Landing, LandingShape
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Identity
from windlass.core.ports.archive import Archive
from windlass.core.ports.store import Store
from windlass.core.radar.collisions import QuickLook
from windlass.core.runs.provider import Provider
from windlass.core.runs.sandbox import Sandbox, SandboxKeeper
from windlass.core.runs.signal import Signal
from windlass.core.runs.workdir import Briefing, WorktreeState
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


# ── processes ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A process to start: detached, in its own session, output and exit code into its run's folder."""

    run: str
    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]
    """Added to what it gets of the daemon's own; the marker is the adapter's business."""
    keeps: tuple[str, ...] = ()
    """Names of variables that it gets of the daemon's, besides PATH, HOME, LANG and the like."""
    stdin: str = ""
    """A file; nothing means an empty input."""
    sandbox: Sandbox | None = None
    """Where it may go; nothing: wherever the user may."""


class Processes(Protocol):
    """Agents' processes. They outlive us; we find them again."""

    async def start(self, launch: Launch, /) -> Identity:
        """Start it. Raises BadInput if the program is not there, Unavailable if the system has no room."""
        ...

    async def find(self, run: str, /) -> Identity | None:
        """The live process that carries this run's marker, if there is one."""
        ...

    def alive(self, identity: Identity, /) -> bool:
        """Whether this very process lives (a reused pid does not count, nor does a zombie)."""
        ...

    def age(self, identity: Identity, /) -> float:
        """Seconds since this process was started, by a clock that never jumps."""
        ...

    async def marked(self) -> dict[str, tuple[int, ...]]:
        """Every run whose marker a living process carries, known or not, with their pids."""
        ...

    async def stop(self, run: str, identity: Identity | None, *, grace: float, gently: str = "TERM") -> int:
        """End the run's whole tree, also what left its session: first by a gentle signal, after the grace by force.

        Returns how many processes there were."""
        ...

    def follow(self, run: str, identity: Identity, stir: Callable[[str], None], /, *places: str) -> None:
        """Call `stir(run)` on the loop when its output grew, it has gone or, if that can be told, a place changed."""
        ...

    def forget(self, run: str, /) -> None:
        """Follow it no longer."""
        ...

    def output(self, run: str, offset: int, limit: int, /) -> bytes:
        """Its output from an offset on, at most `limit` bytes."""
        ...

    def exit_code(self, run: str, /) -> int | None:
        """What the shim wrote when it ended; None if it could not."""
        ...

    async def warden(self) -> SandboxKeeper:
        """What can keep a run in a sandbox on this machine."""
        ...

    def values(self, names: Sequence[str], identity: Identity | None, /) -> tuple[str, ...]:
        """What these variables hold now, with us and with a process; for blotting out, never to be stored."""
        ...

    def overwrite(self, run: str, offset: int, content: bytes, /) -> None:
        """Put other bytes in the place of some of its output."""
        ...

    async def discard(self, folder: str, /) -> None:
        """Remove an agent's own folder, with what stood for the user's home."""
        ...


# ── files that agents and we exchange ────────────────────────────────────────────────────────────────────────


class Workdirs(Protocol):
    """The files of a run: in its folder under our home, and in the agent's worktree."""

    async def brief(
        self,
        run: str,
        worktree: str,
        *,
        prompt: str,
        manifest: Mapping[str, Any],
        inputs: Mapping[str, str],
        files: Mapping[str, str],
        context: Mapping[str, str] | None = None,
    ) -> Briefing:
        """Write the prompt, the provider's files and the worktree's inputs (manifest last); move an old signal away.

        What an agent may only read, such as `tasks/t1.md`, is its context.
        """
        ...

    def signal(self, run: str, worktree: str, /) -> Signal | None:
        """The signal given in this run; never follows links, never blocks."""
        ...

    def signal_places(self, worktree: str, /) -> tuple[str, ...]:
        """The folders in which agents are told to give it."""
        ...

    async def gather(self, folder: str, worktrees: Mapping[str, str], /) -> None:
        """Make a folder in which each of these worktrees is found by its name."""
        ...

    def has_mirrors(self, checkout: str, /) -> bool:
        """Whether `windlass init` made a folder in this checkout that may show what happens."""
        ...

    def shows(self, checkout: str, name: str, text: str, /) -> bool:
        """Whether a file of that folder says just this."""
        ...

    async def mirror(self, checkout: str, name: str, text: str, /) -> None:
        """Put a file into that folder in one step, so that it can be read at any moment."""
        ...


# ── git ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Git(Protocol):
    """A project's repository, the hub beside it, and the worktrees of its agents."""

    @property
    def archive(self) -> Archive:
        """What the hub keeps for later, and the proof of what landed."""
        ...

    async def locate(self, path: str, /) -> str:
        """The top folder of the user's repository at a path, or a clear refusal."""
        ...

    async def inspect(self, top: str, /, *, main: str = "") -> str:
        """The main branch of the user's repository, or a clear refusal of what we can't work on."""
        ...

    async def main(self, project: Project, /) -> str:
        """Bring the hub up to date and return the tip of main."""
        ...

    async def branch_taken(self, project: Project, branch: str, /) -> bool: ...

    async def worktree(self, project: Project, agent: Agent, /) -> tuple[str, str]:
        """Make or verify an agent's worktree. Returns its path and the commit of main it starts from."""
        ...

    async def renew(self, project: Project, agent: Agent, /, *, at: str = "") -> str:
        """Let an agent begin anew, in place, at main or at another commit that the hub has.

        What has not landed is kept: returns the ref that brings it back.

        What git ignores stays there. Raises NotAllowed where something can neither be saved nor stay.
        """
        ...

    async def branch(self, project: Project, agent: Agent, /) -> str:
        """Take an agent's branch into the hub, as it is now. Returns its commit; nothing if it has no worktree."""
        ...

    async def checkout(self, project: Project, /) -> str:
        """The user's checkout as it is, committed or not, as a commit that the hub has: the same one if it is the same.

        What git ignores is not in it, nor nested repositories and files that are too large.
        """
        ...

    async def hide(self, project: Project, agent: Agent, names: Sequence[str], /) -> None:
        """Let these paths of an agent's worktree never count as work."""
        ...

    async def furnish(self, project: Project, agent: Agent, /) -> None:
        """Remember what a new worktree has besides the repository's files: it goes with it, and is no work."""
        ...

    async def files(self, project: Project, /) -> tuple[Sequence[str], bool]:
        """The files of main, and whether there are more than were asked for."""
        ...

    async def locks(self, project: Project, agent: Agent, /) -> Mapping[str, str]:
        """The lock files on an agent's branch, each with the id of its content."""
        ...

    def worktree_path(self, project: Project, agent: Agent, /) -> str: ...

    def has_worktree(self, project: Project, agent: Agent, /) -> bool:
        """Whether an agent's worktree is there."""
        ...

    def reach(self, project: Project, agent: Agent, /) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What an agent's own git must be able to read besides its worktree, and what to write."""
        ...

    def environment(self, project: Project, agent: Agent, /) -> dict[str, str]:
        """Variables that keep an agent's own git away from the user's settings."""
        ...

    async def look(self, project: Project, agent: Agent, run: str, /) -> WorktreeState:
        """Take the branch and a snapshot of an agent's worktree into the hub; show the branch to the user."""
        ...

    async def glance(self, project: Project, agent: Agent, /) -> QuickLook:
        """An agent's work as it is now, for comparing: shown to nobody, and only kept until the next glance."""
        ...

    async def since(self, project: Project, base: str, /) -> QuickLook:
        """What main has become since a commit, as if that were someone's work."""
        ...

    async def clash(self, project: Project, one: QuickLook, other: QuickLook, /) -> tuple[str, ...]:
        """The files in which two works can't be merged, or git's words about it; nothing if they can."""
        ...

    async def stage(
        self, project: Project, head: str, message: str, /, *, onto: str = "", shape: LandingShape = LandingShape.MERGE
    ) -> Candidate:
        """Bring a commit onto main, or onto a candidate, without a checkout. Raises Conflict, with it as text."""
        ...

    async def land(self, project: Project, /, *stack: Candidate) -> Landing:
        """Move main to the last of these, each made on the one before; returns that one's receipt. What has landed
        only gets its receipt. Raises Conflict if main has moved, NotAllowed with git's reason if the checkout is in
        the way."""
        ...

    async def receipt(self, project: Project, candidate: Candidate, /) -> Landing:
        """The receipt of a candidate that main has, or had. Moves nothing."""
        ...

    async def landed(self, project: Project, commit: str, /) -> bool:
        """Whether main already contains this commit."""
        ...

    async def take(self, project: Project, branch: str, /) -> tuple[str, str]:
        """Keep a branch of the user's in the hub, as it is now. Returns its commit and that one's first line."""
        ...

    async def revert(self, project: Project, landing: Landing, branch: str, message: str, /) -> str:
        """Make the commit that takes a landing back, on a branch of the hub."""
        ...

    async def diff(self, project: Project, agent: Agent, /) -> str:
        """What an agent has changed since main, as it is in its worktree now."""
        ...

    async def diff_between(self, project: Project, before: str, after: str, /) -> str:
        """What lies between two commits of the hub."""
        ...

    async def diff_of(self, project: Project, head: str, /) -> str:
        """What a commit of the hub has changed since it left main."""
        ...

    async def remove_worktree(self, project: Project, agent: Agent, /) -> str:
        """Snapshot, then remove. Returns the ref that brings it back; raises NotAllowed where that can't cover all."""
        ...


class Checks(Protocol):
    """The project's own commands."""

    async def run(
        self, project: Project, candidate: Candidate, settings: CheckSettings, started_at: float, /
    ) -> tuple[CheckResult, str]:
        """Run setup and command on exactly the candidate's tree. Returns the verdict and the kept output."""
        ...


# ── the rest ─────────────────────────────────────────────────────────────────────────────────────────────────


class Library(Protocol):
    """What a repository brings along for its agents, read from the user's own checkout."""

    @property
    def guarded(self) -> tuple[str, ...]:
        """Files, and folders ending with a slash, that say what agents are and may do."""
        ...

    async def roster(self, checkout: str, /) -> Roster:
        """The agents that are defined there, and what is wrong with its files."""
        ...

    async def workflow(self, file: str, /) -> Workflow:
        """What a workflow's file says. Raises BadInput with all that is wrong with it."""
        ...

    async def blocks(self, checkout: str, /) -> Mapping[str, str]:
        """The blocks of prompts, each with what the project adds to it."""
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


def _no_token(run: str) -> str:
    del run
    return ""


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
    """How many the machine has."""
    token: Callable[[str], str] = _no_token
    """The token of a run, by which it is known where its connection does not tell; of no run, the person's own."""
