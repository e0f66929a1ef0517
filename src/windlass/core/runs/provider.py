"""How to drive one coding CLI: mostly data, and one pure line reader."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from windlass.core.errors import BadInput
from windlass.core.nouns.agent import Permissions, ToolKind
from windlass.core.nouns.run import RunTrouble, Usage
from windlass.core.runs.output_lines import lines_of, lines_with
from windlass.core.settings.models import ModelSettings

ARGUMENT_LIMIT = 100_000
"""Bytes of one argument that every Linux takes (it is 128 KiB); a longer prompt goes into a file."""


class DoneSign(StrEnum):
    """The sign by which a run counts as done."""

    SIGNAL = "signal"
    """Only a signal; without one it is reminded."""
    EXIT = "exit"
    """A signal, or exit code 0 with something committed."""


@dataclass(frozen=True, slots=True)
class LineReading:
    """The facts in one line of output."""

    text: str = ""
    """The text for people."""
    session: str = ""
    model: str = ""
    usage: Usage | None = None
    total: bool = False
    """The usage is that of the whole session so far, not of what is new."""
    result: str = ""
    trouble: RunTrouble | None = None
    """A trouble; a later one counts more than an earlier one."""
    ended: bool = False
    """The program says that its turn is over; without a trouble in the same line, earlier ones were overcome."""

    @property
    def tells(self) -> bool:
        """Whether there is something in it about the run, and not only words for people."""
        return bool(self.session or self.model or self.usage or self.result or self.trouble or self.ended)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRequest:
    """The facts about a run from which a provider builds its command."""

    prompt: str = ""
    system: str = ""
    """Who the agent is, for a provider that takes this apart; short enough for an argument."""
    prompt_file: str
    """A file with the same text."""
    folder: str = ""
    """The run's own folder, for files that the program needs."""
    worktree: str = ""
    repositories: tuple[str, ...] = ()
    """Where it works in several repositories, the worktree of each; `worktree` is a folder that leads to them."""
    number: int
    session: str
    """The session to go on in, or nothing for a new one."""
    new_session: str = ""
    """An id that a new session may be given, where the program lets us choose."""
    model: str = ""
    base_url: str = ""
    """Where the model's server is, if not at its vendor's."""
    key: str = ""
    """The variable with the model's key, if not its vendor's usual one."""
    permissions: Permissions = Permissions.EDIT
    tools: tuple[ToolKind, ...] | None = None
    """The only tools that it is to have, of those in `Provider.picks`; None: all that its permissions allow."""
    sandboxed: bool = False
    """A sandbox keeps it from harm outside its worktree."""
    options: Mapping[str, str]
    files: Mapping[str, str] = field(default_factory=dict)
    """Where each of `Provider.files` was written, by option name."""


def _as_text(line: str) -> LineReading:
    return LineReading(text=line)


_NO_OBJECT = re.compile(r"\n[^{]")
"""A line that is not a JSON object."""
_ESCAPED = re.compile(r"\\u00[2-7]")
"""A letter as JSON may write it, too: such a line may say what `Provider.telling` does not find in it."""

WITH_YOUR_RIGHTS = "whatever it likes, with your rights"
"""The rights of a program without a sandbox and without flags."""
UNHELD: Mapping[Permissions, str] = {
    **dict.fromkeys(Permissions, WITH_YOUR_RIGHTS),
    Permissions.READ: "not possible outside a sandbox: there are no flags for it",
}
"""The rights of agents whose program has no flags for permissions."""


@dataclass(frozen=True, slots=True)
class Verified:
    """The version of a program that we have driven ourselves, and when."""

    version: str
    on: str


class Login(StrEnum):
    """Whether somebody is logged in, as far as files and variables tell."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One way to run an agent. A new one is a new file in `providers/`, found by its name."""

    name: str
    summary: str
    argv: Callable[[StartRequest], tuple[str, ...]]
    """The command line of a run; its first word is looked up on the PATH."""
    environment: Callable[[StartRequest], Mapping[str, str]] = lambda _: {}
    """Variables that its runs need, none of them secret."""
    stdin: bool = True
    """It reads its prompt from standard input, too; else that is empty."""
    read: Callable[[str], LineReading] = _as_text
    telling: re.Pattern[str] | None = None
    """What stands in each JSON object of its output that tells about the run; without it, every line is read."""
    structured: bool = False
    """It prints events, so that its session, usage and troubles are known; people are shown the readings' text."""
    check: Callable[[Mapping[str, str]], None] = lambda _: None
    """Refuses bad options, before anything is created."""
    price: Callable[[str, Usage], float] = lambda *_: 0.0
    """The price of a usage in dollars, by model, where the program itself does not say."""
    system: bool = False
    """It is told apart who the agent is, by its program's own flag; else that is the beginning of the prompt."""
    models: bool = False
    """It can be told which model to use."""
    takes: Callable[[str], bool] = lambda _: False
    """Whether a model's name says by itself that it is this provider's."""
    ready: Callable[[str, ModelSettings, Callable[[str], bool]], None] = lambda *_: None
    """Refuses a model that can't be asked here, by what is set for it and which variables there are."""
    keys: Callable[[str], tuple[str, ...]] | None = None
    """Which of its secrets a run with a model gets; without this, all of them."""
    options: tuple[str, ...] = ()
    """The options it must have, such as `command`."""
    files: tuple[str, ...] = ()
    """Options whose text the run finds in a file."""
    writes: Mapping[str, str] = field(default_factory=dict)
    """Files that its runs find in their own folder, by name."""
    tools: bool = False
    """Its flags give it our tools, by MCP; any other is told to talk by our commands."""
    picks: tuple[ToolKind, ...] = ()
    """Tools that its flags can give or withhold one by one; the others come with its permissions."""
    claim: DoneSign = DoneSign.SIGNAL
    resumes: bool = False
    """It can go on in the session of an earlier run."""
    gently: str = "TERM"
    """The signal that asks it to end."""
    program: str = ""
    """The program that must be installed, if any."""
    module: str = ""
    """The Python module that must be there, if any, …"""
    distribution: str = ""
    """… and what it is installed as."""
    install: str = ""
    enter: str = ""
    aliases: tuple[str, ...] = ()
    permit: Callable[[StartRequest], tuple[str, ...]] = lambda _: ()
    """The flags that give a run its permissions; `argv` has them, too."""
    reads: bool = False
    """Its flags can hold it to reading; any other is held by a sandbox, or not started."""
    may: Mapping[Permissions, str] = field(default_factory=lambda: UNHELD)
    """The rights of its agents outside a sandbox, in words."""
    version: tuple[str, ...] = ()
    verified: Verified | None = None
    login: tuple[str, ...] = ()
    """Files that are there when somebody is logged in, written as in `folders`."""
    secrets: tuple[str, ...] = ()
    """Variables with credentials: only its own runs get them, and they are redacted in what these print."""
    variables: tuple[str, ...] = ()
    """Other variables of the user's that its runs get."""
    own: bool = False
    """It is described in the user's settings."""
    folders: tuple[str, ...] = ()
    """Its own folders and files below the home, which a sandbox leaves to it; `$NAME` at the start is a variable.
    In a sandbox everything else below the home, or below `$NAME`, is the agent's own."""
    protected: tuple[str, ...] = ()
    """What else of the user's it needs in a sandbox, such as settings, and can't change: later it may run outside."""

    @property
    def plain(self) -> bool:
        """Whether its lines are words for people, and tell nothing about the run."""
        return self.read is _as_text

    def readings(self, text: str) -> list[LineReading]:
        """What these lines tell about the run, each with its newline. Those that can't tell anything are not read."""
        if self.plain:
            return []
        lines = lines_with(text, _NO_OBJECT, self.telling, _ESCAPED) if self.telling else lines_of(text)
        return [reading for reading in map(self.read, lines) if reading.tells]


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """A provider, as it is installed on this machine."""

    provider: Provider
    path: str = ""
    """The path of its program; nothing if it is not installed, or needs none."""
    version: str = ""
    login: Login = Login.UNKNOWN
    evidence: str = ""
    """The variable or file that says so."""

    @property
    def installed(self) -> bool:
        return bool(self.path) or not (self.provider.program or self.provider.module)

    @property
    def known(self) -> bool:
        """Whether it is the very version that we have driven ourselves."""
        return self.provider.verified is not None and self.provider.verified.version == self.version


_USUAL = {
    Permissions.READ: (ToolKind.READ, ToolKind.SEARCH),
    Permissions.EDIT: (ToolKind.READ, ToolKind.SEARCH, ToolKind.EDIT, ToolKind.SHELL),
    Permissions.FULL: (ToolKind.READ, ToolKind.SEARCH, ToolKind.EDIT, ToolKind.SHELL),
}
"""The tools that come with permissions, where a provider can't be told which."""


def check_tools(provider: Provider, tools: Collection[ToolKind], permissions: Permissions) -> None:
    """Refuse a choice of tools that a provider has no flags for."""
    usual = _USUAL[permissions]
    for tool in ToolKind:
        if tool not in provider.picks and (tool in tools) != (tool in usual):
            what = "be given" if tool in tools else "go without"
            raise BadInput(
                f"An agent of the provider {provider.name} can't {what} {tool} by itself.",
                hint=f"With permissions: {permissions} it has {', '.join(usual)}: leave `tools` out, or take another.",
            )
