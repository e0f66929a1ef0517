"""A workflow as its file describes it: who takes part, what is prepared, and who begins. One start is an instance."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from windlass.core.files.params import Param
from windlass.core.files.template import Template
from windlass.core.nouns.agent import Permissions, ToolKind

DEFAULT_INSTANCE = "default"
DEFAULT_SETUP_SECONDS = 600.0


class WorktreeChoice(StrEnum):
    """Where an agent of a workflow works."""

    SHARED = "shared"
    """In one worktree with the others of its instance: those who may write take turns."""
    OWN = "own"
    """In a worktree of its own."""
    PROJECT = "project"
    """On the user's own checkout as it is when a run begins, to look at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What the agents of an instance share. A file without a name is not shared."""

    folder: Template
    """Where the files are, seen from the top of the project."""
    channel: str = ""
    """The file that shows what was said."""
    document: str = ""
    """The file of the shared document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """An agent as a workflow describes it."""

    name: str
    model: str = ""
    provider: str = ""
    """How it is run; nothing, with a model: by the provider for models; with neither: as set for the project."""
    command: str = ""
    """The shell command that is the agent, if it is one."""
    system_prompt: str = ""
    """The text itself, also where the file names another file."""
    prompt_file: str = ""
    """Where the text comes from, if not from the workflow's file."""
    role: str = ""
    tools: tuple[ToolKind, ...] | None = None
    """None: all that its permissions allow."""
    permissions: Permissions = Permissions.EDIT
    worktree: WorktreeChoice = WorktreeChoice.SHARED
    persistent: bool = False
    triggers: tuple[str, ...] = ()
    handoff_to: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupStep:
    """A shell command that runs before any agent starts."""

    shell: Template
    name: str = ""
    """What its output is called in the texts that follow."""
    seconds: float = DEFAULT_SETUP_SECONDS
    """How long it may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowTask:
    """A piece of work that an instance begins with."""

    name: str
    title: str = ""
    """Nothing: the first line of its brief."""
    brief: Template
    agent: str
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowLimits:
    """What an instance may use at most; None: as set for the project. They lower what is set, and never raise it."""

    runs: int | None = None
    """How many of its agents may run at once."""
    seconds: float | None = None
    """How long all of it may take."""
    hops: int | None = None
    """How many messages may follow from one another without a person."""
    wakes: int | None = None
    """How often an agent may be woken in a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """One file."""

    name: str
    file: str
    agents: tuple[Member, ...]
    kickoff: Template = field(default_factory=Template)
    """The first message; nothing where tasks begin it."""
    context: Context | None = None
    """None: its agents share neither channel nor document."""
    setup: tuple[SetupStep, ...] = ()
    params: tuple[Param, ...] = ()
    tasks: tuple[WorkflowTask, ...] = ()
    """Each after those that it needs."""
    limits: WorkflowLimits = field(default_factory=WorkflowLimits)
    gate: bool = True
    """Whether what its agents committed becomes a change when they are quiet."""

    def values(self, instance: str) -> dict[str, str]:
        """What the names stand for that need no parameter, no environment and no setup."""
        known = {"instance": instance, "workflow.name": self.name, "workflow.instance": instance}
        if self.context is None:
            return known
        folder = "/".join(part for part in self.context.folder.render(known).split("/") if part not in ("", "."))
        shared = {"context.channel": self.context.channel, "context.document": self.context.document}
        return known | {name: f"{folder}/{file}" if folder else file for name, file in shared.items() if file}
