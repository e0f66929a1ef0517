"""Who: a named participant with a mailbox, a branch and a worktree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from windlass.core.address import Address
from windlass.core.errors import BadInput

WORK = "work"
"""The source of an agent that was made for one task."""
NEW = "new"
"""The source of an agent that was made to be spoken to."""


class Status(StrEnum):
    """What an agent is doing, derived from its runs and never stored."""

    IDLE = "idle"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    ERROR = "error"
    STOPPED = "stopped"


class Permissions(StrEnum):
    """What an agent may do; each provider says with which of its flags."""

    READ = "read"
    """Look, and change nothing."""
    EDIT = "edit"
    """Edit and run inside its worktree, and commit to its branch."""
    FULL = "full"
    """Whatever its program can do, without being asked."""


class ToolKind(StrEnum):
    """What an agent may be given to work with. Each provider says by which of its own tools."""

    READ = "read"
    """Read files."""
    SEARCH = "search"
    """Find files, and text in them."""
    EDIT = "edit"
    """Change, make and remove files."""
    SHELL = "shell"
    """Run commands."""
    WEB = "web"
    """Fetch pages, and search the web."""


LONGEST_MODEL = 200


def check_model(model: str) -> str:
    """The name of a model. Raises BadInput if a command line would take it for something else."""
    if model.startswith("-") or not model.isprintable() or len(model.split()) != 1 or len(model) > LONGEST_MODEL:
        shown = model if len(model) <= LONGEST_MODEL else f"{model[:LONGEST_MODEL]}…"
        raise BadInput(f"{shown!r} is no name of a model.", hint="It is one word, as its coding CLI knows it.")
    return model


class Confinement(StrEnum):
    """Whether an agent's runs are kept in a sandbox."""

    AUTO = "auto"
    """In a sandbox, where the machine has one."""
    ON = "on"
    """Always: without one, nothing starts."""
    OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One participant. Its status is asked (`policy.status_of`), not kept."""

    name: str
    instance: str = ""
    project: str
    also: tuple[str, ...] = ()
    """The ids of other projects that it changes: its folder then has a worktree of each project."""
    provider: str
    source: str = WORK
    """Where it comes from: `work`, an agent file, a workflow."""
    options: Mapping[str, str] = field(default_factory=dict)
    """What its provider needs to start it, such as `command` or `script`."""
    role: str = ""
    """What it is for, in one line, where its file says so."""
    body: str = ""
    """The prompt in its file."""
    model: str = ""
    """Which model it is to use. Default: its provider's own."""
    permissions: Permissions = Permissions.EDIT
    sandbox: Confinement = Confinement.AUTO
    attended: bool = False
    persistent: bool = False
    workflow: str = ""
    """The workflow that it takes part in, if any; `instance` then names the start of that workflow."""
    talks: bool = True
    """Whether it may speak to other agents; else only to people."""
    shares: bool = False
    """Whether it begins at the newest commit of its instance, and takes turns with the instance's other agents."""
    copies: bool = False
    """Whether each run gets a copy of the user's checkout, with the files that are not committed."""
    tools: tuple[ToolKind, ...] | None = None
    """The only tools that it is given; None: all that its permissions allow."""
    created_at: float = 0.0
    retired_at: float | None = None

    @property
    def id(self) -> str:
        return str(self.address)

    @property
    def projects(self) -> tuple[str, ...]:
        """The ids of all projects that it works in, its own first."""
        return (self.project, *self.also)

    @property
    def address(self) -> Address:
        return Address(self.name, self.instance)

    @property
    def stays(self) -> bool:
        """Whether it is there for more than one task, so that it is not retired when its work has landed."""
        return self.persistent or self.attended or self.source != WORK

    @property
    def branch(self) -> str:
        """The branch its work is on, in its worktree, in the hub and in the user's repository."""
        return f"work/{self.name}" + (f".{self.instance}" if self.instance else "")
