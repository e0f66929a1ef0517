"""What a model does, turn by turn: the same words for every API."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any


class Fault(StrEnum):
    """What an API can refuse with; each API has its own form for it."""

    AUTH = "auth"
    """The key is wrong."""
    RATE = "rate"
    """Too many requests just now."""
    QUOTA = "quota"
    """The subscription's limit is reached, until a certain time."""
    BILLING = "billing"
    """There is no money left."""
    OVERLOADED = "overloaded"
    CONTEXT = "context"
    """The prompt is too long."""
    SERVER = "server"


class Tool(StrEnum):
    """What a model wants done. Each CLI has tools of its own for it."""

    SHELL = "shell"
    WRITE = "write"
    OURS = "ours"
    """One of Windlass's own, by MCP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One use of a tool: `command` for the shell, `path` and `content` for a file, `name` and `given` for ours."""

    tool: Tool
    command: str = ""
    path: str = ""
    content: str = ""
    name: str = ""
    given: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens that one answer is said to have cost. `cached` ones are part of `input`."""

    input: int = 100
    output: int = 20
    cached: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One turn: an answer, or something that goes wrong before it or in the middle of it."""

    text: str = ""
    think: str = ""
    calls: tuple[Call, ...] = ()
    usage: Usage = Usage()
    fault: Fault | None = None
    hang: bool = False
    """Say nothing more until the other side gives up."""
    drop: bool = False
    """Close the connection."""
    midway: bool = False
    """Let it go wrong after the answer has begun, instead of before."""
    times: int | None = None
    """How often it goes wrong in one conversation before the answer is given. None: always."""
    in_all: bool = False
    """Count `times` over all conversations of the scenario together."""
    delay: float = 0.0
    """Seconds before anything is said."""
    gate: str = ""
    """Say nothing before the test has opened this gate."""
    resets_in: int = 3600
    """Seconds until a quota is there again."""
    retry_after: int | None = None
    """Seconds that the other side is asked to wait."""

    @property
    def trouble(self) -> str:
        """What goes wrong in this step; nothing in most."""
        return self.fault or ("hang" if self.hang else "drop" if self.drop else "")


Scenarios = Mapping[str, Sequence[Step]]

END = Step(text="The script has no further step.")


def say(text: str, **more: Any) -> Step:
    return Step(text=text, **more)


def shell(command: str, **more: Any) -> Step:
    """Run a shell command with the CLI's own tool."""
    return Step(calls=(Call(tool=Tool.SHELL, command=command),), **more)


def write(path: str, content: str, **more: Any) -> Step:
    """Write a new file with the CLI's own tool; the path counts from the CLI's folder."""
    return Step(calls=(Call(tool=Tool.WRITE, path=path, content=content),), **more)


def ours(name: str, /, *, gate: str = "", **given: Any) -> Step:
    """Use one of Windlass's own tools."""
    return Step(calls=(Call(tool=Tool.OURS, name=name, given=given),), gate=gate)


def fail(fault: Fault, **more: Any) -> Step:
    return Step(fault=fault, **more)


def step_at(steps: Sequence[Step], turn: int) -> Step:
    """The step of that turn; after the last one, words that end the conversation."""
    return steps[turn] if turn < len(steps) else END


# ── scripts in files ─────────────────────────────────────────────────────────────────────────────────────────


def load(path: Path) -> dict[str, list[Step]]:
    """Read `{"NAME": [STEP, …], …}` from a JSON file."""
    return {name: [parse_step(step) for step in steps] for name, steps in json.loads(path.read_text()).items()}


def parse_step(value: Mapping[str, Any]) -> Step:
    """A step as JSON: the fields of `Step`, and `shell` and `write` for single calls."""
    known = {each.name for each in dataclasses.fields(Step)} - {"calls", "gate"}
    unknown = set(value) - known - {"shell", "write"}
    if unknown:
        raise ValueError(f"A step has no {', '.join(sorted(unknown))}: {json.dumps(value)}")
    fields = {name: value[name] for name in known & set(value)}
    if "fault" in fields:
        fields["fault"] = Fault(fields["fault"])
    if "usage" in fields:
        fields["usage"] = Usage(**fields["usage"])
    return Step(calls=tuple(_calls(value)), **fields)


def _calls(value: Mapping[str, Any]) -> list[Call]:
    calls = []
    if "write" in value:
        calls.append(Call(tool=Tool.WRITE, **value["write"]))
    if "shell" in value:
        calls.append(Call(tool=Tool.SHELL, command=value["shell"]))
    return calls


# ── between the server and an API ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a request says, whichever API it came by."""

    model: str
    system: str
    """All instructions that are not the person's."""
    prompts: tuple[str, ...]
    """What the person (or Windlass) said, oldest first."""
    results: tuple[str, ...]
    """What the tools returned, oldest first."""
    tools: frozenset[str]
    turn: int
    """How many turns the model has had so far."""
    streaming: bool
    conversation: str = ""
    """The CLI's own id of the conversation, if it sends one."""
    key: str = ""
    """The key or token that came with it."""
    folder: str = ""
    """Where the CLI works, if it says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer, ready to be put into an API's form."""

    asked: Asked
    step: Step
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A fault, in an API's form."""

    status: int
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)


def texts(content: Any) -> str:
    """The words in a message, which may be a text or a list of parts."""
    if isinstance(content, str):
        return content
    return "\n".join(str(part["text"]) for part in content or () if isinstance(part, dict) and "text" in part)
