"""A workflow as its file describes it: its agents, its setup and its first message. One start is an instance."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from windlass.core.files.params import Param
from windlass.core.files.template import Template
from windlass.core.nouns.agent import Permissions, ToolKind

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
    """The files that the agents of an instance share. A file without a name is not shared."""

    folder: Template
    """The folder of the files, from the top of the project."""
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
    """Its provider; nothing, with a model: the provider of the model; with neither: as set for the project."""
    command: str = ""
    system_prompt: str = ""
    """The text itself, also if the workflow names a file with it."""
    prompt_file: str = ""
    """The file with the text, if it is not the workflow's own."""
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
    """The name of its output in later texts."""
    seconds: float = DEFAULT_SETUP_SECONDS


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
    """The limits of an instance; None: as set for the project. They only lower the project's limits."""

    runs: int | None = None
    """How many of its agents may run at once."""
    seconds: float | None = None
    hops: int | None = None
    """How many messages may follow from one another without a person."""
    wakes: int | None = None
    """How often an agent may be woken in a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """A workflow, read from its file."""

    name: str
    file: str
    agents: tuple[Member, ...]
    kickoff: Template = field(default_factory=Template)
    """The first message; nothing if tasks begin the instance."""
    context: Context | None = None
    """None: its agents share neither channel nor document."""
    setup: tuple[SetupStep, ...] = ()
    params: tuple[Param, ...] = ()
    tasks: tuple[WorkflowTask, ...] = ()
    """Each after those that it needs."""
    limits: WorkflowLimits = field(default_factory=WorkflowLimits)
    gate: bool = True
    """Whether the agents' commits become a change when the instance is quiet."""

    def values(self, instance: str) -> dict[str, str]:
        """The values that need no parameter, no environment and no setup."""
        known = {"instance": instance, "workflow.name": self.name, "workflow.instance": instance}
        if self.context is None:
            return known
        folder = "/".join(part for part in self.context.folder.render(known).split("/") if part not in ("", "."))
        shared = {"context.channel": self.context.channel, "context.document": self.context.document}
        return known | {name: f"{folder}/{file}" if folder else file for name, file in shared.items() if file}
