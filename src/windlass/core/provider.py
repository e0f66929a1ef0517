"""How to drive one coding CLI: mostly data, and one pure line reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from windlass.core.run import Usage


class Claim(StrEnum):
    """What counts as the agent's word that it is done."""

    SIGNAL = "signal"
    """Only a signal; without one it is reminded."""
    EXIT = "exit"
    """A signal, or exit code 0 with something committed."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one line of output tells us."""

    text: str = ""
    """What a person should see of it."""
    session: str = ""
    usage: Usage | None = None
    result: str = ""


@dataclass(frozen=True, slots=True)
class Start:
    """What a provider is told about the run that it is to start."""

    prompt_file: str
    number: int
    session: str
    options: Mapping[str, str]
    files: Mapping[str, str] = field(default_factory=dict)
    """Where each of `Provider.files` was written, by option name."""


def _as_text(line: str) -> Reading:
    return Reading(text=line)


def _accept(options: Mapping[str, str]) -> None:
    del options


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One way to run an agent. A new one is a new file in `providers/`, found by its name."""

    name: str
    summary: str
    argv: Callable[[Start], tuple[str, ...]]
    """The command line of a run; its first word is looked up on the PATH."""
    read: Callable[[str], Reading] = _as_text
    check: Callable[[Mapping[str, str]], None] = _accept
    """Refuses bad options, before anything is created."""
    options: tuple[str, ...] = ()
    """The options it must have, such as `command`."""
    files: tuple[str, ...] = ()
    """Options whose text the run finds in a file."""
    claim: Claim = Claim.SIGNAL
    resumes: bool = False
    """It can go on in the session of an earlier run."""
    program: str = ""
    """The program that must be installed, if any."""
    install: str = ""
    """How to install it."""
